/** A text as a plain string. */
import type { Side, Text } from "../types";

/** A text in one line. Special tokens between words, as in a pair, become a slash. */
export const plainText = (text: Text): string => [text.source, ...(text.target ? [text.target] : [])].map(inOneLine).join("  →  ");

function inOneLine(side: Side): string {
  if (!side.forms.length) return side.tokens.join(" ");
  const parts: string[][] = [[]];
  side.words.forEach((word, i) => {
    if (word < 0 && parts.at(-1)!.length) parts.push([]);
    if (word >= 0 && word !== side.words[i - 1]) parts.at(-1)!.push(side.forms[word]!);
  });
  return parts.filter((part) => part.length).map((part) => part.join(" ")).join(" / ");
}
