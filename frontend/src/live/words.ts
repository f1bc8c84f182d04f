/** Corresponding words of two texts, as strings. */

/** A word in quotation marks; "nothing" for an empty string. */
export const quoted = (word: string): string => (word ? `“${word}”` : "nothing");

/** A position in two texts: one word, or both words if they differ. */
export const where = ([first, second]: readonly [string, string]): string => (first === second ? quoted(first) : `${quoted(first)} / ${quoted(second)}`);
