import type { Page } from "./data";
import type { Moment } from "./moment";

export function mount(element: HTMLElement, page: Page, moment: Moment): void {
    void [element, page, moment];
}
