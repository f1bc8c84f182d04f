/** Words of two texts that correspond, in writing. */

/** A word in quotation marks; what is not there is nothing. */
export const quoted = (word: string): string => (word ? `“${word}”` : "nothing");

/** A place in two texts: one word, or the two that stand there. */
export const where = ([first, second]: readonly [string, string]): string => (first === second ? quoted(first) : `${quoted(first)} / ${quoted(second)}`);
