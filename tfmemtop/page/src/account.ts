/** The account of each process: of what its memory consists. The parts add up to the total. */
import { swatch, variable } from "./colours";
import type { Account, Page } from "./data";
import { bytes, element, share, sized, table } from "./elements";
import { OF_RUN, type Moment } from "./moment";

export function mount(place: HTMLElement, _: Page, moment: Moment): void {
    moment.on(OF_RUN, () => {
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
    for (const part of parts) {
        const piece = bar.appendChild(element("div"));
        piece.style.background = variable(part.name);
        piece.style.flexGrow = String(Math.max(0, part.bytes));
        piece.title = `${part.name} ${figure(part)}`;
    }
    const rows = parts.map((part) => [
        element("span", "", swatch(part.name), part.name),
        sized(part.bytes, figure(part)),
        share(part.bytes, total),
        part.meaning,
    ]);
    const sum = [element("b", "", "total"), sized(total), "", ""];
    const made = table(["part", "bytes", "share", "what it is"], rows, [1, 2], [sum]);
    const said = notes.map((note) => element("p", "quiet", note));
    return element("div", "account", element("h3", "", heading), bar, made, ...said);
}
