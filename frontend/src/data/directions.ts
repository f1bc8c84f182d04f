/** Directions of contests in words. The head of a phrase is its governor here: "head" means a head of attention. */
export const inWords = (text: string): string => text.replaceAll("dep-to-head", "dependent → governor").replaceAll("head-to-dep", "governor → dependent").replaceAll("-to-", " → ");
