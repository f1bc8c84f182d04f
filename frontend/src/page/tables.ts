/** HTML tables that can be sorted by column and searched: `<table data-table="relations">`. */
import type { Location } from "./address";

const SEARCHED = 8; // rows; shorter tables have no search box

/** Make the tables of a page sortable. Their initial state is in the address. */
export function enhanceTables(root: ParentNode, address: Location): void {
  for (const table of root.querySelectorAll<HTMLTableElement>("table[data-table]")) enhance(table, table.dataset["table"]!, address);
}

function enhance(table: HTMLTableElement, name: string, address: Location): void {
  const body = table.tBodies[0], titles = [...(table.tHead?.rows[0]?.cells ?? [])];
  if (!body || body.rows.length < 2 || [...body.rows].some((row) => row.cells.length !== titles.length)) return;
  const rows = [...body.rows];
  const keys = { sort: `sort.${name}`, find: `find.${name}` };
  const sort = (column: number, down: boolean): void => {
    const sorted = column < 0 ? rows : [...rows].sort((a, b) => compared(a.cells[column]!, b.cells[column]!, down));
    body.append(...sorted);
    titles.forEach((title, i) => title.setAttribute("aria-sort", i === column ? (down ? "descending" : "ascending") : "none"));
  };
  titles.forEach((title, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...title.childNodes);
    button.addEventListener("click", () => {
      const numbers = numeric(rows, column), now = title.getAttribute("aria-sort");
      const down = now === "none" ? numbers : now === "ascending";
      sort(column, down);
      address.set({ [keys.sort]: `${down ? "-" : ""}${column + 1}` });
    });
    title.append(button);
    title.scope = "col";
  });
  const search = rows.length >= SEARCHED ? searchBox(table, name, (text) => address.set({ [keys.find]: text })) : null;
  const follow = (): void => {
    const { values } = address.address, asked = Number(values[keys.sort] ?? 0);
    sort(Math.abs(asked) - 1, asked < 0);
    search?.(values[keys.find] ?? "");
  };
  address.listen(follow);
  follow();
}

/** Add a search box above a table. It hides rows without the text. Returns a function that sets the text. */
function searchBox(table: HTMLTableElement, name: string, changed: (text: string) => void): (text: string) => void {
  const line = document.createElement("p"), label = document.createElement("label"), input = document.createElement("input"), count = document.createElement("span");
  line.className = "find";
  input.type = "search";
  input.id = `find-${name}`;
  input.placeholder = "head or label";
  label.htmlFor = input.id;
  label.textContent = "Find";
  count.setAttribute("role", "status");
  line.append(label, input, count);
  (table.closest(".scroll") ?? table).before(line);
  const rows = [...table.tBodies[0]!.rows];
  const show = (text: string): void => {
    const wanted = text.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const has = !wanted || (row.dataset["find"] ??= wordsOf(row)).includes(wanted);
      row.hidden = !has;
      shown += Number(has);
    }
    count.textContent = wanted ? `${shown} of ${rows.length} rows` : "";
  };
  input.addEventListener("input", () => {
    show(input.value);
    changed(input.value);
  });
  return (text) => {
    if (input.value !== text) input.value = text;
    show(text);
  };
}

const wordsOf = (row: HTMLTableRowElement): string => [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();

/** The sort key of a cell: its leading number, the position of a head, or its text; null, which sorts last, for "–" and empty cells. */
export function keyOf(text: string): number | string | null {
  const plain = text.trim().replace(/(\d),(?=\d{3})/g, "$1").replace(/^[−–](?=[\d.])/, "-");
  const head = /^(?:\w+\/)?(\d+)-(\d+)\b/.exec(plain);
  if (!plain || plain === "–" || plain === "nan") return null;
  if (head) return Number(head[1]) * 10_000 + Number(head[2]);
  const number = /^[<+]?\s*(-?\d*\.?\d+(?:e-?\d+)?)/i.exec(plain);
  return number ? Number(number[1]) : plain.toLowerCase();
}

const numeric = (rows: readonly HTMLTableRowElement[], column: number): boolean => {
  const keys = rows.map((row) => row.cells[column]!.textContent ?? "").filter((text) => !/^(?:\w+\/)?\d+-\d+\b/.test(text.trim())).map(keyOf);
  return keys.some((key) => typeof key === "number");
};

function compared(a: HTMLTableCellElement, b: HTMLTableCellElement, down: boolean): number {
  const x = keyOf(a.textContent ?? ""), y = keyOf(b.textContent ?? "");
  if (x === null || y === null) return Number(x === null) - Number(y === null);
  const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
  return down ? -order : order;
}
