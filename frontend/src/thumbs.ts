/** Maps as small pictures. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { LINE, sequentialRgb } from "./colour";
import type { MapSource, Side, Text } from "./types";

const MOST = 64; // pixels a side

function canvasOf(width: number, height: number): { canvas: HTMLCanvasElement; context: CanvasRenderingContext2D } {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  return { canvas, context: canvas.getContext("2d")! };
}

/** A map as a PNG, a pixel a weight, coloured by its square root. Of a longer text each pixel shows the largest weight of its block. */
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

/** A map as a PNG of lines from what attends, on the left, to what is attended to, on the right. */
export function lineThumbnail(weights: Float32Array, rows: number, columns: number): string {
  const side = 2 * MOST, least = Math.max(rows, columns) > 40 ? 0.1 : 0.02; // fainter lines cannot be seen
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

/** The maps of heads on one text, filled as they come; empty without a text. */
export interface Maps {
  weights: Map<string, Float32Array>;
  trouble: string;
}

const NONE: Maps = { weights: new Map(), trouble: "" };

/** Fetch the maps of all these heads on a text, or none where there is no text. */
export function useMaps(source: MapSource, text: Text | null, heads: readonly string[]): Maps {
  const [found, setFound] = useState<{ text: Text | null; maps: Maps }>({ text, maps: NONE });
  useEffect(() => {
    let wanted = true;
    const setMaps = (maps: Maps): void => setFound({ text, maps });
    const weights = new Map<string, Float32Array>();
    const fetchAll = async (given: Text): Promise<void> => {
      for (const [i, head] of heads.entries()) {
        const map = await source.map(given, head);
        if (!wanted) return;
        weights.set(head, map);
        if (i % 48 === 47) setMaps({ weights: new Map(weights), trouble: "" });
      }
      setMaps({ weights, trouble: "" });
    };
    setMaps(NONE);
    if (text) {
      fetchAll(text).catch((error: unknown) => {
        if (wanted) setMaps({ weights, trouble: String(error instanceof Error ? error.message : error) });
      });
    }
    return () => {
      wanted = false;
    };
  }, [source, text, heads]);
  return found.text === text ? found.maps : NONE; // not those of an earlier text
}

/** A picture of each map, drawn once for each way of drawing. */
export function usePictures(weights: ReadonlyMap<string, Float32Array>, draw: (weights: Float32Array, head: string) => string): ReadonlyMap<string, string> {
  const drawn = useRef<{ draw: typeof draw; of: Map<Float32Array, string> }>({ draw, of: new Map() });
  return useMemo(() => {
    if (drawn.current.draw !== draw) drawn.current = { draw, of: new Map() };
    const { of } = drawn.current;
    for (const [head, map] of weights) if (!of.has(map)) of.set(map, draw(map, head));
    return new Map([...weights].map(([head, map]) => [head, of.get(map)!]));
  }, [weights, draw]);
}

/** A text in one line; special tokens between words, as those of a pair, are a bar. */
export const plain = (text: Text): string => [text.source, ...(text.target ? [text.target] : [])].map(inOneLine).join("  →  ");

function inOneLine(side: Side): string {
  if (!side.forms.length) return side.tokens.join(" ");
  const parts: string[][] = [[]];
  side.words.forEach((word, i) => {
    if (word < 0 && parts.at(-1)!.length) parts.push([]);
    if (word >= 0 && word !== side.words[i - 1]) parts.at(-1)!.push(side.forms[word]!);
  });
  return parts.filter((part) => part.length).map((part) => part.join(" ")).join(" / ");
}
