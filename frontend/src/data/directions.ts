/** Directions of contests in words. The head of a phrase is called its governor here, because "head" means attention head. */
export const inWords = (text: string): string => text.replaceAll("dep-to-head", "dependent → governor").replaceAll("head-to-dep", "governor → dependent").replaceAll("-to-", " → ");
