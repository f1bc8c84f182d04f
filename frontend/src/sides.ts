/** What all views of two runs say. */
import { present } from "./shade";
import type { Comparison } from "./types";

/** Both signatures, as a figure's last line has them. */
export const signatures = ({ a, b }: Comparison): string => `a: ${a.signature} b: ${b.signature}`;

/** Whether there are intervals at all. */
export const known = ({ quantities, layers, best }: Comparison): boolean => [...quantities, ...layers].some(({ low }) => present(low).length) || best.some(({ low }) => low !== null);

/** How a caption speaks of the two runs and of the intervals. */
export const captionOf = (data: Comparison, what: string): string => `${what} a: ${data.a.name}, b: ${data.b.name}.${known(data) ? ` Intervals of differences (95%): ${data.how}.` : ""}`;

/** Whether an interval leaves 0 out. */
export const differs = (low: number | null | undefined, high: number | null | undefined): boolean => low !== null && low !== undefined && high !== null && high !== undefined && (low > 0 || high < 0);
