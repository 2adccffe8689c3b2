/** Sessions beside each other: their figures, those that differ first, and what differs at the peaks of their steps. */
import type { Page } from "./data";
import { button, bytes, element, sentence, table } from "./elements";
import type { Moment } from "./moment";

export function mount(place: HTMLElement, page: Page, moment: Moment): void {
    const { comparison } = page;
    if (!comparison) return;
    const names = page.sessions.map(({ name, placement }) => placement || name);
    const heads = names.map((name, session) => {
        return button(name, `Show ${name} in all views`, () => moment.choose({ session }));
    });
    const figures = table(
        ["", ...names],
        comparison.rows.map(({ name, values, different }) => [element(different ? "b" : "span", "", name), ...values]),
    );
    place.append(
        element("h3", "", comparison.title),
        ...comparison.text.map((text) => element("p", "", sentence(text))),
        element("div", "choices", "All views show ", ...heads),
        figures,
    );
    if (comparison.differences.length) {
        const rows = comparison.differences.map(({ name, values }) => [name, ...values.map(bytes)]);
        const columns = names.map((_, which) => which + 1);
        place.append(element("h3", "", "What differs at the peak of a step"));
        place.append(table(["allocations", ...names], rows, columns));
    }
    moment.on(["session"], ({ session }) => {
        heads.forEach((each, which) => (each.ariaPressed = String(which === session)));
    });
}
