/** Hooks that fetch attention maps of selected heads or of all heads. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { MapSource, Text } from "../types";

type Arrived = Map<string, Float32Array | string>; // a map, or an error message

/** The maps of a text that have arrived so far, by head; a string is an error message. Maps of an earlier text are not returned. */
export function useMaps(source: MapSource, text: Text, heads: readonly string[]): Arrived {
  const [, redraw] = useState(0);
  const kept = useRef<{ source: MapSource; text: Text; arrived: Arrived; asked: Set<string> } | null>(null);
  if (kept.current?.text !== text || kept.current.source !== source) kept.current = { source, text, arrived: new Map(), asked: new Set() };
  const current = kept.current;
  useLayoutEffect(() => {
    for (const head of heads) {
      if (current.asked.has(head)) continue;
      current.asked.add(head);
      const arrive = (result: Float32Array | string): void => {
        current.arrived.set(head, result);
        if (typeof result === "string") current.asked.delete(head); // fetched again when the head is selected again
        if (kept.current === current) redraw((n) => n + 1);
      };
      source.map(text, head).then(arrive, (error: unknown) => arrive(String(error instanceof Error ? error.message : error)));
    }
  }, [current, heads.join(" ")]);
  return current.arrived;
}

/** The maps of heads on one text, filled as they arrive; empty without a text. */
export interface Maps {
  weights: Map<string, Float32Array>;
  trouble: string;
}

const NONE: Maps = { weights: new Map(), trouble: "" };

/** Fetch the maps of all these heads on a text. Without a text, fetch nothing. */
export function useAllMaps(source: MapSource, text: Text | null, heads: readonly string[]): Maps {
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
  return found.text === text ? found.maps : NONE; // without maps of an earlier text
}
