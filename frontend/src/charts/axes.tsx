/** Axes of plots: grid lines and tick labels. */
import type { ScaleLinear } from "d3-scale";
import type { JSX } from "preact";

type Scale = ScaleLinear<number, number>;
const minus = (text: string): string => text.replace("-", "−");

/** The left axis: tick labels, a grid line per tick, and a rotated title. */
export function LeftAxis(props: { scale: Scale; x: number; width: number; label: string; count?: number }): JSX.Element {
  const { scale, x, width } = props;
  const [bottom, top] = scale.range() as [number, number];
  const format = scale.tickFormat(props.count ?? 5);
  return (
    <g aria-hidden="true">
      {scale.ticks(props.count ?? 5).map((tick) => (
        <>
          <line x1={x} x2={x + width} y1={scale(tick)} y2={scale(tick)} stroke="var(--hs-line)" stroke-width={tick === 0 ? 1 : 0.5} />
          <text x={x - 6} y={scale(tick) + 3.5} font-size={10} text-anchor="end" style={{ fill: "var(--hs-faint)" }}>{minus(format(tick))}</text>
        </>
      ))}
      <text transform={`translate(${x - 46} ${(bottom + top) / 2}) rotate(-90)`} font-size={10.5} text-anchor="middle" style={{ fill: "var(--hs-faint)" }}>{props.label}</text>
    </g>
  );
}

/** The layer axis below a plot. If there is no room for all labels, it shows every 2nd, 5th, 10th, 20th or 50th layer. */
export function LayerAxis(props: { layers: number[]; scale: Scale; y: number; label: boolean }): JSX.Element {
  const { layers, scale, y } = props;
  const [left, right] = scale.range() as [number, number];
  const every = [1, 2, 5, 10, 20].find((step) => ((right - left) * step) / Math.max(1, layers.length) >= 20) ?? 50;
  return (
    <g aria-hidden="true">
      <line x1={left} x2={right} y1={y} y2={y} stroke="var(--hs-faint)" />
      {layers.filter((layer) => every === 1 || layer % every === 0).map((layer) => (
        <>
          <line x1={scale(layer)} x2={scale(layer)} y1={y} y2={y + 3} stroke="var(--hs-faint)" />
          <text x={scale(layer)} y={y + 14} font-size={10} text-anchor="middle" style={{ fill: "var(--hs-faint)" }}>{layer}</text>
        </>
      ))}
      {props.label && <text x={(left + right) / 2} y={y + 28} font-size={10.5} text-anchor="middle" style={{ fill: "var(--hs-faint)" }}>Layer</text>}
    </g>
  );
}

/** The bottom axis: tick labels, and vertical grid lines through the plot. */
export function BottomAxis(props: { scale: Scale; top: number; y: number; label: string; count?: number }): JSX.Element {
  const { scale, y } = props;
  const [left, right] = scale.range() as [number, number];
  const format = scale.tickFormat(props.count ?? 5);
  return (
    <g aria-hidden="true">
      {scale.ticks(props.count ?? 5).map((tick) => (
        <>
          <line x1={scale(tick)} x2={scale(tick)} y1={props.top} y2={y} stroke="var(--hs-line)" stroke-width={tick === 0 ? 1 : 0.5} />
          <text x={scale(tick)} y={y + 13} font-size={10} text-anchor="middle" style={{ fill: "var(--hs-faint)" }}>{minus(format(tick))}</text>
        </>
      ))}
      <text x={(left + right) / 2} y={y + 28} font-size={10.5} text-anchor="middle" style={{ fill: "var(--hs-faint)" }}>{props.label}</text>
    </g>
  );
}
