/** Maps as small pictures. */
import { useEffect, useState } from "preact/hooks";
import { sequentialRgb } from "./colour";
import { sidesOf } from "./heads";
import type { MapSource, Text } from "./types";

const MOST = 64; // pixels a side

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
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d")!;
  const picture = context.createImageData(width, height);
  largest.forEach((weight, at) => picture.data.set([...sequentialRgb(Math.sqrt(weight)), 255], at * 4));
  context.putImageData(picture, 0, 0);
  return canvas.toDataURL("image/png");
}

/** The maps of heads on one text with their pictures, filled as they come; empty without a text. */
export interface Maps {
  weights: Map<string, Float32Array>;
  pictures: Map<string, string>;
  trouble: string;
}

const NONE: Maps = { weights: new Map(), pictures: new Map(), trouble: "" };

/** Fetch the maps of all these heads on a text, or none where there is no text. */
export function useMaps(source: MapSource, text: Text | null, heads: readonly string[]): Maps {
  const [maps, setMaps] = useState(NONE);
  useEffect(() => {
    let wanted = true;
    const found: Maps = { weights: new Map(), pictures: new Map(), trouble: "" };
    const fetchAll = async (given: Text): Promise<void> => {
      for (const [i, head] of heads.entries()) {
        const weights = await source.map(given, head);
        if (!wanted) return;
        const { queries, keys } = sidesOf(given, head);
        found.weights.set(head, weights);
        found.pictures.set(head, thumbnail(weights, queries.tokens.length, keys.tokens.length));
        if (i % 48 === 47) setMaps({ ...found });
      }
      setMaps({ ...found });
    };
    setMaps(NONE);
    if (text) {
      fetchAll(text).catch((error: unknown) => {
        if (wanted) setMaps({ ...found, trouble: String(error instanceof Error ? error.message : error) });
      });
    }
    return () => {
      wanted = false;
    };
  }, [source, text, heads]);
  return maps;
}

/** A text in one line. */
export const plain = (text: Text): string => [text.source, ...(text.target ? [text.target] : [])].map((side) => (side.forms.length ? side.forms : side.tokens).join(" ")).join("  →  ");
