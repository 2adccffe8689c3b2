/** The keys of the page, and the list of them that `?` shows. */
import { button, element, table } from "./elements";
import { lastUpTo, stepped, type Moment } from "./moment";

type Keys = Record<string, [meaning: string, action: () => void]>;

const keys: Keys = {};

/** Let *more* keys act, wherever the focus is, except where one writes or chooses. */
export function onKeys(more: Keys): void {
    Object.assign(keys, more);
}

/** Listen. The keys that move the moment are the page's own. */
export function listen(moment: Moment, sections: { id: string; title: string }[]): void {
    const go = (at: number | undefined) => at !== undefined && moment.choose({ at });
    const column = (by: number) => {
        const times = moment.place?.times ?? [];
        go(times[Math.max(0, lastUpTo(times, moment.choice.at) + by)]);
    };
    const event = (by: number) => go(moment.window && stepped(moment.window, moment.choice.at, by));
    onKeys({
        ArrowLeft: ["The previous reading", () => column(-1)],
        ArrowRight: ["The next reading", () => column(1)],
        "Shift+ArrowLeft": ["The previous allocation or release", () => event(-1)],
        "Shift+ArrowRight": ["The next allocation or release", () => event(1)],
        p: ["The highest peak", () => moment.choose({ at: moment.peakAt, window: moment.pool?.shown ?? 0 })],
        e: ["The end of the run", () => go(moment.end)],
    });
    sections.forEach(({ id, title }, place) => onKeys({ [place + 1]: [title, () => jump(id)] }));
    onKeys({ "?": ["These keys", showHelp] });
    document.addEventListener("keydown", (event) => {
        const { target } = event;
        if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
        if (target instanceof HTMLElement && target.closest("input, select, textarea, dialog")) return;
        const key = event.shiftKey && event.key.length > 1 ? `Shift+${event.key}` : event.key;
        const action = Object.hasOwn(keys, key) ? keys[key][1] : undefined;
        if (!action) return;
        event.preventDefault();
        action();
    });
}

function jump(id: string): void {
    const section = document.getElementById(id)!;
    section.scrollIntoView();
    section.focus({ preventScroll: true });
}

const ABOUT = "The moment chosen in one view is chosen in all. In memory over time, drag or turn the wheel to zoom.";

export function showHelp(): void {
    const rows = Object.entries(keys).map(([key, [meaning]]) => {
        return [element("kbd", "", key.replace("ArrowLeft", "←").replace("ArrowRight", "→")), meaning];
    });
    const dialog = element("dialog", "", element("h2", "", "Keys"), table([], rows), element("p", "note", ABOUT));
    dialog.append(button("Close", "Close (Esc)", () => dialog.close()));
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
}
