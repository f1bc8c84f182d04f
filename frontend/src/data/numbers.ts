/** Numbers as text, and values that may be missing. */

export type Maybe = number | null | undefined;

/** The values that are finite numbers. */
export const present = (values: readonly Maybe[]): number[] => values.filter((v): v is number => v !== null && v !== undefined && Number.isFinite(v));

/** A number as in the tables: two decimals, or a dash for a missing value. */
export const show = (value: Maybe, digits = 2): string => (value === null || value === undefined || Number.isNaN(value) ? "–" : value.toFixed(digits));

/** A number in a short form: `.62`, `−.08`, `2.4`, `31`. */
export function short(value: Maybe): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const text = size >= 9.95 ? size.toFixed(0) : size >= 0.995 ? size.toFixed(1) : size.toFixed(2).slice(1);
  return value < 0 && /[1-9]/.test(text) ? `−${text}` : text;
}

const largest = (values: readonly Maybe[]): number => present(values).reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** The number of decimals for some values: two, or as many as the largest value needs for two significant digits. */
export function digitsOf(values: readonly Maybe[]): number {
  const most = largest(values);
  return most > 0 ? Math.min(9, Math.max(2, 1 - Math.floor(Math.log10(most)))) : 2;
}

/** The power of ten by which small values are multiplied in small cells; 0 if the values are not small. */
export function powerOf(values: readonly Maybe[]): number {
  const most = largest(values);
  return most > 0 && most < 0.05 ? Math.ceil(-Math.log10(most)) : 0;
}

/** The factor of multiplied values in a legend: ` × 10³`; "" for a power of 0. */
export const timesPower = (power: number): string => (power ? ` × 10${[...String(power)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]).join("")}` : "");

/** A value with its interval: `0.46 [0.45 0.47]`. */
export const valueAndInterval = (value: Maybe, low: Maybe, high: Maybe, digits = 2): string => (present([value, low, high]).length < 3 ? show(value, digits) : `${show(value, digits)} [${show(low, digits)} ${show(high, digits)}]`);

/** A difference with its sign: `+0.12`, `−0.03`. */
export const signed = (value: Maybe, digits = 2): string => (value === null || value === undefined || !Number.isFinite(value) ? "–" : `${value < 0 ? "−" : value > 0 ? "+" : ""}${Math.abs(value).toFixed(digits)}`);

/** A difference with its interval: `+0.12 [+0.05 +0.19]`. */
export const signedInterval = (value: Maybe, low: Maybe, high: Maybe, digits = 2): string => (present([low, high]).length < 2 ? signed(value, digits) : `${signed(value, digits)} [${signed(low, digits)} ${signed(high, digits)}]`);

/** Whether an interval excludes 0. */
export const excludesZero = (low: Maybe, high: Maybe): boolean => low !== null && low !== undefined && high !== null && high !== undefined && (low > 0 || high < 0);
