/** Lines on a canvas, because a browser cannot handle many thousands of SVG elements. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useTheme } from "../ui/hooks";
import type { Layer, Layout, Line } from "./line-layout";
import { ends, strokeOf } from "./line-layout";

/** Lines on a canvas, at the resolution of the screen. */
export function LineCanvas({ layout, layers, lines }: { layout: Layout; layers: readonly Layer[]; lines: readonly Line[] }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  useLayoutEffect(() => {
    const element = canvas.current!, pen = element.getContext("2d")!;
    // Browsers limit the height and the area of a canvas.
    const scale = Math.min(devicePixelRatio || 1, 16_000 / layout.height, Math.sqrt(16e6 / (layout.width * layout.height)));
    element.width = Math.round(layout.width * scale);
    element.height = Math.round(layout.height * scale);
    const colours = getComputedStyle(element), known = new Map<string, string>();
    const colour = (name: string): string => {
      if (!known.has(name)) known.set(name, colours.getPropertyValue(name.slice(4, -1)).trim());
      return known.get(name)!;
    };
    const emphasis = lines.length > 0 && lines.at(-1)!.strong;
    pen.scale(scale, scale);
    for (const line of lines) {
      const [x1, y1, x2, y2] = ends(layout, line, layers.length);
      const stroke = strokeOf(line, layers, emphasis);
      pen.globalAlpha = stroke.opacity;
      pen.strokeStyle = colour(stroke.colour);
      pen.lineWidth = stroke.width;
      pen.beginPath();
      pen.moveTo(x1, y1);
      pen.lineTo(x2, y2);
      pen.stroke();
    }
  }, [layout, layers, lines, theme]);
  return <canvas ref={canvas} class="hs-links" style={{ width: `${layout.width}px`, height: `${layout.height}px` }} aria-hidden="true" />;
}
