/** Who holds the memory at the chosen moment: the window and its words, the icicle, and the table below it. */
import type { Page } from "./data";
import { button, bytes, duration, element, noWindow, refill, select, WINDOW } from "./elements";
import { Flame } from "./flame";
import { shownEvent, standing, tree } from "./holders_at";
import { HoldersTable } from "./holders_table";
import { GROUPINGS, OF_WINDOW, type Moment } from "./moment";

const NOT_THEN = "No allocations were recorded at that moment: this is the peak of the recorded step nearest to it.";

export function mount(place: HTMLElement, _: Page, moment: Moment): void {
    const choices = element("div", "choices");
    const words = element("p", "about");
    const now = element("p", "now");
    const cells = element("div", "flame");
    const readout = element("p", "readout");
    const clear = button("", "Show all again", () => moment.choose({ selection: null }));
    let byStack = false;
    const flame = new Flame(cells, readout, ({ by, name, kind }) => {
        moment.choose(by && kind !== "unknown" ? { grouping: by, selection: name } : { selection: null });
    });
    const table = new HoldersTable(moment);
    const groupings = GROUPINGS.map((by) => {
        return button(by === "op" ? "operation" : by, `Rows by ${by}`, () => moment.choose({ grouping: by }));
    });
    const stacks = button("by call stack", "Show calls instead of layers and operations", () => {
        byStack = !byStack;
        drawFlame(false);
    });
    const group = element("div", "choices", "Rows by ", ...groupings, table.filter, clear);

    const none = noWindow();
    choices.title = words.title = WINDOW;
    const whole = element("div", "view", choices, words, now, stacks, cells, readout, group, table.element);
    place.append(none, whole);

    function drawFlame(keepZoom: boolean): void {
        const { window, choice } = moment;
        if (window) flame.show(tree(window, shownEvent(window, choice.at).event, byStack), keepZoom);
        readout.textContent = "Click a cell to see its parts and its memory over the step.";
        stacks.ariaPressed = String(byStack);
    }

    function draw(): void {
        const { window } = moment;
        const { at, grouping, selection } = moment.choice;
        none.hidden = window !== undefined;
        whole.hidden = window === undefined;
        if (!window) return;
        const { event, recorded } = shownEvent(window, at);
        const found = standing(window, event, grouping);
        words.textContent = window.about;
        const then = event === window.peakAt ? "at the peak" : `${duration(1e6 * (at - window.began))} into the window`;
        now.textContent = recorded ? `${bytes(found.total)} in use ${then}.` : NOT_THEN;
        now.title = recorded ? `At ${at.toFixed(6)} s: tfmemtop holders --at ${at.toFixed(6)}` : "";
        now.classList.toggle("note", !recorded);
        stacks.hidden = !window.owners.some((owner) => owner.stack.length);
        groupings.forEach((each, which) => (each.ariaPressed = String(GROUPINGS[which] === grouping)));
        clear.hidden = selection === null;
        clear.textContent = `✕ ${selection}`;
        table.show(found);
    }

    moment.on(OF_WINDOW, () => {
        const { choice, run, pool } = moment;
        const pools = run?.pools.map((each) => `${each.device} of process ${each.pid}`) ?? [];
        const windows = (pool?.windows ?? []).map((each, number) => {
            const highest = number === pool!.shown ? " (highest)" : "";
            return `${each.began.toFixed(1)} s, ${bytes(each.peak)}${highest}, ${each.title}`;
        });
        refill(
            choices,
            select("Pool", pools, choice.pool, (which) => moment.choose({ pool: which })),
            select("Window", windows, choice.window, (which) => moment.choose({ window: which })),
        );
    });
    moment.on([...OF_WINDOW, "at", "grouping", "selection"], draw);
    moment.on([...OF_WINDOW, "at"], (_, changed) => drawFlame(!changed.has("window") && !changed.has("pool")));
}
