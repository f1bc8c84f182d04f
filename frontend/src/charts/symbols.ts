/** Symbols of series, in the order of the static figures. They distinguish series without colour. */
import type { SymbolType } from "d3-shape";
import { symbol, symbolCircle, symbolCross, symbolDiamond, symbolSquare, symbolStar, symbolTriangle, symbolWye } from "d3-shape";

type Corner = [x: number, y: number];

/** A polygon with these corners around the origin, rotated by `degrees` and scaled to an area. */
const polygon = (corners: Corner[], area: number, degrees: number): SymbolType => ({
  draw(context, size) {
    const scale = Math.sqrt(size / area), angle = (degrees * Math.PI) / 180;
    corners.forEach(([x, y], i) => {
      const at: Corner = [scale * (x * Math.cos(angle) - y * Math.sin(angle)), scale * (x * Math.sin(angle) + y * Math.cos(angle))];
      if (i) context.lineTo(...at);
      else context.moveTo(...at);
    });
    context.closePath();
  },
});

const DOWN = polygon([[0, -1], [Math.sqrt(3) / 2, 0.5], [-Math.sqrt(3) / 2, 0.5]], (3 * Math.sqrt(3)) / 4, 180);
const TIMES = polygon([[-3, -1], [-1, -1], [-1, -3], [1, -3], [1, -1], [3, -1], [3, 1], [1, 1], [1, 3], [-1, 3], [-1, 1], [-3, 1]], 20, 45);
const TYPES = [symbolCircle, symbolSquare, symbolTriangle, symbolDiamond, DOWN, symbolCross, TIMES, symbolStar, symbolWye];

/** The outline of symbol `number` around the origin, about `size` wide. */
export const outline = (number: number, size: number): string => symbol(TYPES[number % TYPES.length], (size * size * Math.PI) / 4)() ?? "";
