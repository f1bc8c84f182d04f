/** Attention maps as thumbnails. */
import { useMemo, useRef } from "preact/hooks";
import { LINE, sequentialRgb } from "./colour";

const MOST = 64; // largest width and height in pixels

function canvasOf(width: number, height: number): { canvas: HTMLCanvasElement; context: CanvasRenderingContext2D } {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  return { canvas, context: canvas.getContext("2d")! };
}

/** A map as a PNG, one pixel per weight, coloured by the square root. For a long text each pixel shows the largest weight of a block. */
export function thumbnail(weights: Float32Array, rows: number, columns: number): string {
  const block = Math.max(1, Math.ceil(Math.max(rows, columns) / MOST));
  const height = Math.ceil(rows / block), width = Math.ceil(columns / block);
  const largest = new Float32Array(width * height);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      const at = Math.floor(i / block) * width + Math.floor(j / block);
      largest[at] = Math.max(largest[at]!, weights[i * columns + j]!);
    }
  }
  const { canvas, context } = canvasOf(width, height);
  const picture = context.createImageData(width, height);
  largest.forEach((weight, at) => picture.data.set([...sequentialRgb(Math.sqrt(weight)), 255], at * 4));
  context.putImageData(picture, 0, 0);
  return canvas.toDataURL("image/png");
}

/** A map as a PNG of lines from attending positions (left) to attended positions (right). */
export function lineThumbnail(weights: Float32Array, rows: number, columns: number): string {
  const side = 2 * MOST, least = Math.max(rows, columns) > 40 ? 0.1 : 0.02; // fainter lines are invisible
  const { canvas, context } = canvasOf(side, side);
  const place = (at: number, of: number): number => ((at + 0.5) / of) * side;
  context.strokeStyle = `rgb(${LINE})`;
  context.lineWidth = Math.min(2, (0.6 * side) / Math.max(rows, columns));
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      const weight = weights[i * columns + j]!;
      if (weight < least) continue;
      context.globalAlpha = Math.min(1, weight);
      context.beginPath();
      context.moveTo(2, place(i, rows));
      context.lineTo(side - 2, place(j, columns));
      context.stroke();
    }
  }
  return canvas.toDataURL("image/png");
}

/** The pictures of maps by head. Each map is drawn once per `draw` function. */
export function usePictures(weights: ReadonlyMap<string, Float32Array>, draw: (weights: Float32Array, head: string) => string): ReadonlyMap<string, string> {
  const drawn = useRef<{ draw: typeof draw; of: Map<Float32Array, string> }>({ draw, of: new Map() });
  return useMemo(() => {
    if (drawn.current.draw !== draw) drawn.current = { draw, of: new Map() };
    const { of } = drawn.current;
    for (const [head, map] of weights) if (!of.has(map)) of.set(map, draw(map, head));
    return new Map([...weights].map(([head, map]) => [head, of.get(map)!]));
  }, [weights, draw]);
}
