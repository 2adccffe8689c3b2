/** Sessions beside each other: their figures, those that differ first, and what differs at the peaks of their steps. */
import type { Comparison, Page } from "./data";
import { button, bytes, element, table } from "./elements";
import type { Moment } from "./moment";

const MOST = 40; // rows of allocations

export function mount(place: HTMLElement, page: Page, moment: Moment): void {
    const { comparison } = page;
    if (!comparison) return;
    const names = page.sessions.map(({ name, placement }) => placement || name);
    const heads = names.map((name, session) => {
        return button(name, `Show ${name} in all views`, () => moment.choose({ session }));
    });
    const rows = comparison.rows.map(({ name, values, different }) => {
        return [element(different ? "b" : "span", different ? "different" : "", name), ...values];
    });
    place.append(element("h3", "", comparison.title));
    place.append(...comparison.text.map((text) => element("p", "", text)));
    place.append(element("div", "choices", "All views show ", ...heads));
    const figures = table(["", ...names], rows);
    figures.querySelectorAll(".different").forEach((cell) => cell.closest("tr")!.classList.add("different"));
    place.append(figures);
    if (comparison.differences.length) {
        place.append(element("h3", "", "What differs at the peak of a step"), differences(comparison, names));
    }
    moment.subscribe(({ session }) => heads.forEach((each, which) => (each.ariaPressed = String(which === session))));
}

function differences({ differences: all }: Comparison, names: string[]): HTMLElement {
    const rows = all.slice(0, MOST).map(({ name, values }) => [name, ...values.map(bytes)]);
    const found = table(["allocations", ...names], rows, names.map((_, which) => which + 1));
    if (all.length > MOST) found.append(element("p", "quiet", `${all.length - MOST} more rows differ, each by less.`));
    return found;
}
