/** The account of each process: of what its memory consists. The parts add up to the total. */
import { variable } from "./colours";
import type { Account, Page } from "./data";
import { bytes, element, share, table } from "./elements";
import type { Moment } from "./moment";

export function mount(place: HTMLElement, _: Page, moment: Moment): void {
    moment.subscribe((_, changed) => {
        if (!changed.has("run") && !changed.has("session")) return;
        const accounts = moment.run?.accounts ?? [];
        place.replaceChildren(...accounts.map(drawn));
        if (!accounts.length) place.append(element("p", "note", "The memory of the run's processes was not read."));
    });
}

function drawn({ heading, parts, total, notes }: Account): HTMLElement {
    const figure = (part: Account["parts"][number]) => `${part.exact ? "" : "~"}${bytes(part.bytes)}`;
    const bar = element("div", "stack");
    bar.role = "img";
    bar.ariaLabel = parts.map((part) => `${part.name} ${figure(part)}`).join(", ");
    const rows = parts.map((part) => {
        const ink = variable(part.name);
        const piece = element("div");
        piece.style.background = ink;
        piece.style.flexGrow = String(Math.max(0, part.bytes));
        piece.title = `${part.name} ${figure(part)}`;
        bar.append(piece);
        const mark = element("i", "swatch");
        mark.style.background = ink;
        const size = sized(figure(part), part.bytes);
        return [element("span", "", mark, part.name), size, share(part.bytes, total), part.meaning];
    });
    rows.push([element("b", "", "total"), sized(bytes(total), total), "", ""]);
    return element(
        "div",
        "account",
        element("h3", "", heading),
        bar,
        table(["part", "bytes", "share", "what it is"], rows, [1, 2]),
        ...notes.map((note) => element("p", "quiet", note)),
    );
}

function sized(text: string, size: number): HTMLElement {
    const made = element("span", "", text);
    made.dataset.bytes = String(size);
    return made;
}
