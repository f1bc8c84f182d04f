/** Marks of series, in the order of the static figures: a second sign beside the colour. */
import { symbol, symbolCircle, symbolCross, symbolDiamond, symbolSquare, symbolTimes, symbolTriangle } from "d3-shape";

const TYPES = [symbolCircle, symbolSquare, symbolTriangle, symbolDiamond, symbolCross, symbolTimes];

/** The outline of mark number `number` around the origin, `size` wide or so. */
export const outline = (number: number, size: number): string => symbol(TYPES[number % TYPES.length], (size * size * Math.PI) / 4)() ?? "";
