/** Elements of the page, and figures as the rest of tfmemtop writes them. Texts are set as texts, never as markup. */

export type Child = Node | string | null | false;

/** A new element: `element("p", "note", "text", otherElement)`. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
    tag: Tag,
    classes = "",
    ...children: Child[]
): HTMLElementTagNameMap[Tag] {
    const made = document.createElement(tag);
    if (classes) made.className = classes;
    made.append(...children.filter((child): child is Node | string => child !== null && child !== false));
    return made;
}

export function button(label: string, title: string, action: () => void): HTMLButtonElement {
    const made = element("button", "", label);
    made.type = "button";
    made.title = title;
    made.addEventListener("click", action);
    return made;
}

/** Put *children* in place of what *place* has. What has the focus there gives it to what takes its place. */
export function refill(place: HTMLElement, ...children: (Node | string)[]): void {
    const active = () => [...place.querySelectorAll<HTMLElement>("button, input, select")];
    const focused = active().indexOf(document.activeElement as HTMLElement);
    place.replaceChildren(...children);
    if (focused >= 0) active()[focused]?.focus({ preventScroll: true });
}

/** A choice among *names*, with a label; nothing where there is none. */
export function select(label: string, names: string[], chosen: number, action: (place: number) => void): Node | string {
    if (names.length < 2) return "";
    const made = element("select");
    names.forEach((name, place) => made.append(new Option(name, String(place), false, place === chosen)));
    made.addEventListener("change", () => action(made.selectedIndex));
    return element("label", "choice", label, " ", made);
}

/** A table, of which the rows `foot` are sums. The columns `figures` are aligned to the right. */
export function table(heads: Child[], rows: Child[][], figures: number[] = [], foot: Child[][] = []): HTMLElement {
    const row = (tag: "th" | "td", cells: Child[]) => {
        const style = (column: number) => (figures.includes(column) ? "figure" : "");
        return element("tr", "", ...cells.map((cell, column) => element(tag, style(column), cell)));
    };
    const head = element("thead", "", row("th", heads));
    head.querySelectorAll("th").forEach((cell) => (cell.scope = "col"));
    const body = element("tbody", "", ...rows.map((cells) => row("td", cells)));
    const sums = element("tfoot", "", ...foot.map((cells) => row("td", cells)));
    return element("div", "table", element("table", "", head, body, sums));
}

/** A number of bytes, which tests read as it is. */
export function sized(size: number, text = bytes(size)): HTMLElement {
    const made = element("span", "", text);
    made.dataset.bytes = String(size);
    return made;
}

/** A sentence of tfmemtop, in which what stands between backticks is code. */
export function sentence(text: string): HTMLElement {
    const parts = text.split(/`([^`]+)`/);
    return element("span", "", ...parts.map((part, place) => (place % 2 ? element("code", "", part) : part)));
}

export const WINDOW =
    "A window is a time, usually one step, in which tfmemtop records each allocation and release, with the operation " +
    "that asked for it.";

/** What stands in place of a view of a window where there is none. */
export function noWindow(): HTMLElement {
    const none = "No window of allocations was recorded in this run, so who held the memory is not known.";
    return element("p", "note", `${none} ${WINDOW} With the probe, tfmemtop records windows by itself.`);
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
export const UNKNOWN = "—";

/** `1536` as `1.5 KiB`, an unknown size as `—`. */
export function bytes(count: number | null | undefined): string {
    if (count == null) return UNKNOWN;
    let [size, power] = [count, 0];
    // 1023.95 would be written as 1024.0, so it takes the next unit.
    while (Math.abs(size) >= 1023.95 && power < UNITS.length - 1) [size, power] = [size / 1024, power + 1];
    return `${power === 0 ? size : size.toFixed(1)} ${UNITS[power]}`;
}

/** `3725` seconds as `01:02:05`, a day or more as `2d 03:04`. */
export function clock(seconds: number): string {
    const whole = Math.max(0, Math.floor(seconds));
    const two = (number: number) => String(Math.floor(number)).padStart(2, "0");
    const [days, rest] = [Math.floor(whole / 86_400), whole % 86_400];
    const [hours, minutes] = [two(rest / 3600), two((rest / 60) % 60)];
    return days ? `${days}d ${hours}:${minutes}` : `${hours}:${minutes}:${two(rest % 60)}`;
}

/** `135 µs`, `3.0 ms`, `1.2 s` */
export function duration(us: number): string {
    if (us < 1000) return `${Math.round(us)} µs`;
    return us < 1e6 ? `${(us / 1e3).toFixed(1)} ms` : `${(us / 1e6).toFixed(1)} s`;
}

export const share = (part: number, whole: number) => (whole ? `${((100 * part) / whole).toFixed(1)} %` : UNKNOWN);
