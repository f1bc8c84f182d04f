/** The state of a page in its address: `#relations&head=8-4&quantity=tokens/to_sep` has a section and values by name. */

export interface Address {
  section: string; // "" for none
  values: Record<string, string>;
}

const WAIT = 150; // milliseconds; browsers limit the rate of address changes

/** The section and the values in the part of an address after `#`. Invalid escape sequences are kept as text. */
export function parse(hash: string): Address {
  const address: Address = { section: "", values: {} };
  for (const part of hash.replace(/^#/, "").split("&").filter(Boolean)) {
    const [name, ...rest] = part.split("=").map(decoded);
    if (rest.length) address.values[name!] = rest.join("=");
    else address.section ||= name!;
  }
  return address;
}

/** An address as text. Only characters that must be escaped are escaped. */
export function written({ section, values }: Address): string {
  const escape = (text: string): string => encodeURIComponent(text).replace(/%(2F|3A|2C|20)/g, (code) => (code === "%20" ? "+" : decodeURIComponent(code)));
  const parts = Object.entries(values).filter(([, value]) => value !== "").map(([name, value]) => `${escape(name)}=${escape(value)}`);
  return `#${[...(section ? [encodeURIComponent(section)] : []), ...parts].join("&")}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replace(/\+/g, " "));
  } catch {
    return text;
  }
}

/** The address of a page: reads, observes and changes it. A notebook frame has no address; there it only stores the state. */
export class Location {
  private now = parse(location.hash);
  private late: ReturnType<typeof setTimeout> | undefined;
  private readonly listeners = new Set<(address: Address) => void>();
  private readonly real = location.protocol !== "about:";

  constructor(private path = "") {
    addEventListener("hashchange", () => {
      if (written(parse(location.hash)) === written(this.now)) return;
      this.now = parse(location.hash);
      for (const listener of this.listeners) listener(this.now);
    });
  }

  get address(): Address {
    return this.now;
  }

  listen(listener: (address: Address) => void): void {
    this.listeners.add(listener);
  }

  /** Change values without a new history entry; "" removes a value. `path` is the new path of the page on a server. */
  set(values: Record<string, string>, path = this.path): void {
    this.now = { ...this.now, values: Object.fromEntries(Object.entries({ ...this.now.values, ...values }).filter(([, value]) => value !== "")) };
    this.path = path;
    clearTimeout(this.late);
    this.late = setTimeout(() => this.write(), WAIT);
    if ("head" in values || path) this.write(); // at once for a head, which changes once; a slider changes continuously
  }

  /** Change values or the section with a new history entry, which the browser's back button undoes. */
  go(section: string, values: Record<string, string> = {}): void {
    const next = { section, values: { ...this.now.values, ...values } };
    if (written(next) === written(this.now)) return;
    this.now = next;
    if (this.real) history.pushState(null, "", this.path + written(next));
  }

  private write(): void {
    clearTimeout(this.late);
    const hash = written(this.now);
    if (this.real) history.replaceState(null, "", (this.path || location.pathname + location.search) + (hash === "#" ? "" : hash));
  }
}
