/** Captions of the views of two runs. */
import { present } from "../data/numbers";
import type { Comparison } from "../types";

/** Both signatures, as in the last line of a figure. */
export const signatures = ({ a, b }: Comparison): string => `a: ${a.signature} b: ${b.signature}`;

/** Whether any difference has an interval. */
export const hasIntervals = ({ quantities, layers, best }: Comparison): boolean => [...quantities, ...layers].some(({ low }) => present(low).length) || best.some(({ low }) => low !== null);

/** A caption with the names of the two runs and the method of the intervals. */
export const captionOf = (data: Comparison, what: string): string => `${what} a: ${data.a.name}, b: ${data.b.name}.${hasIntervals(data) ? ` Intervals of differences (95%): ${data.how}.` : ""}`;
