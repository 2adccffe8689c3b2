/** Memory over time: the layers of a GPU or of the CPU's pool, or the runs laid over each other. */
import uPlot from "uplot";
import { onTheme, variable } from "./colours";
import type { Page, Place, Session } from "./data";
import { button, bytes, clock, element, refill, select, share } from "./elements";
import { onKeys } from "./keys";
import { lastUpTo, runAt, type Moment } from "./moment";
import { chart, reveal, showAll, showRuns, zoom, type Chart } from "./time_chart";
import { courses, figuresAt, stacked, sum, type Course } from "./time_data";
import { drawMarks, drawMoment, headRoom } from "./time_marks";

const RUNS = ["variables", "loss", "workspace", "gradients", "activations", "xla", "optimizer", "tensors"];
const VIEWS = ["layers", "runs over each other: in use", "runs over each other: total used"];

/** What is drawn in a chart: the layers or the runs. */
type Drawn = Pick<Chart, "lines" | "data" | "headRoom" | "reach" | "draw">;

export function mount(place: HTMLElement, page: Page, moment: Moment): void {
    let view = 0;
    let logarithmic = isFlat(page);
    let hovered: number | null = null;
    let graph: uPlot | undefined;
    let lines: Course[] = [];

    const controls = element("div", "controls");
    const area = element("div", "graph");
    const heading = element("h3", "");
    const figures = element("tbody");
    heading.role = "status"; // what a key has chosen is read aloud
    place.append(
        controls,
        element("div", "beside", area, element("div", "legend", heading, element("table", "", figures))),
    );
    area.role = "img";

    /** The moment in the graph's own seconds: where runs are laid over each other, since the run began. */
    const offset = () => (view ? (moment.run?.began ?? 0) : 0);
    const runOf = (at: number) => moment.session.runs.at(runAt(moment.session, at));
    const closer = (factor: number) => graph && zoom(graph, factor, moment.choice.at - offset());
    const all = () => graph && showAll(graph);

    /** Make the graph anew. It goes on to show *range*; else all, or the runs where these took a part of the time. */
    function build(range?: uPlot.Scale): void {
        const { session, place: card } = moment;
        graph?.destroy();
        graph = undefined;
        area.replaceChildren();
        const height = innerWidth < 600 ? 260 : 380;
        area.style.minHeight = `${height}px`;
        lines = card && view ? courses(page, session, card, view === 2) : [];
        const drawn = !card?.times.length ? undefined : view ? runs() : layers(session, card);
        if (drawn) graph = chart(area, { ...drawn, logarithmic, height, onHover, onClick });
        else area.append(element("p", "note", "Memory was not read in this session."));
        if (graph && range) graph.setScale("x", { min: range.min!, max: range.max! });
        else if (graph && !view) showRuns(graph, session);
        steer();
        tell();
    }

    function layers(session: Session, card: Place): Drawn {
        return {
            lines: card.layers.map(({ key }) => ({ key, filled: true })),
            data: stacked(card, session.ended),
            headRoom: headRoom(session),
            reach: [...card.limits.map((limit) => limit.bytes), card.total ?? 0],
            draw: (u) => drawMarks(u, session, card, moment.choice.at, moment.choice.run),
        };
    }

    function runs(): Drawn {
        return {
            lines: lines.map((_line, number) => ({ key: RUNS[number % RUNS.length], filled: false })),
            data: uPlot.join(lines.map(({ times, bytes }) => [times, bytes])),
            headRoom: 0,
            reach: [],
            draw: (u) => drawMoment(u, moment.choice.at - offset()),
        };
    }

    function onHover(at: number | null): void {
        hovered = at === null ? null : at + offset();
        tell();
    }

    function onClick(at: number): void {
        hovered = null; // a finger that has touched stays, as it were
        moment.choose({ at: view ? Math.min(at + offset(), moment.end) : at });
    }

    function steer(): void {
        const { session } = moment;
        const toggle = button("logarithmic", "A logarithmic axis (l)", changeAxis);
        toggle.ariaPressed = String(logarithmic);
        const runs = page.sessions.reduce((count, each) => count + each.runs.length, 0);
        const places = session.places.map(({ name, model }) => (model ? `${name}, ${model}` : name));
        refill(
            controls,
            places.length > 1
                ? select("of", places, moment.choice.place, (number) => moment.choose({ place: number }))
                : "",
            runs > 1 ? select("show", VIEWS, view, changeView) : "",
            toggle,
            button("+", "Zoom in (+, or the wheel)", () => closer(0.5)),
            button("−", "Zoom out (-, or the wheel)", () => closer(2)),
            button("all", "Show all (0, or a double click)", all),
            button("peak", "Go to the peak (p)", () => moment.choose({ at: moment.peakAt })),
            element("span", "note", "Drag to zoom, click to choose a moment."),
        );
    }

    function tell(): void {
        const at = hovered ?? moment.choice.at;
        const rows = view ? runRows(at - offset()) : layerRows(at);
        const run = runOf(at);
        const phases = run?.phases.filter(({ began, ended }) => began <= at && at <= (ended ?? Infinity)) ?? [];
        const where = [
            `at ${clock(at - offset())}`,
            run && !view && `run ${run.number}`,
            ...phases.map(({ label }) => label),
        ];
        heading.textContent = where.filter(Boolean).join(", ");
        figures.replaceChildren(...rows);
        const spoken = rows.map((row) => [...row.cells].map((cell) => cell.textContent).join(" "));
        area.ariaLabel = `Memory over time, ${heading.textContent}: ${spoken.join("; ")}`;
    }

    function layerRows(at: number): HTMLTableRowElement[] {
        const card = moment.place;
        if (!card) return [];
        const sizes = figuresAt(card, at);
        const used = sum(sizes);
        const limit = card.limits.find((each) => each.run === runOf(at)?.number);
        return [
            ...card.layers
                .map(({ key, name }, index) => row(key, name, sizes[index], part(sizes[index], used)))
                .reverse(),
            row(null, card.total === null ? "pool" : "total used", used),
            ...(limit ? [row(null, "limit of the pool", limit.bytes)] : []),
            ...(card.total === null ? [] : [row(null, `${card.name} has`, card.total)]),
        ];
    }

    function runRows(at: number): HTMLTableRowElement[] {
        return lines.map(({ name, times, bytes: sizes }, number) => {
            const figure = at > (times.at(-1) ?? 0) ? null : (sizes[lastUpTo(times, at)] ?? null);
            return row(RUNS[number % RUNS.length], name, figure, `peak ${bytes(Math.max(...sizes.map(Number)))}`);
        });
    }

    function changeView(number: number): void {
        view = number;
        build();
    }

    function changeAxis(): void {
        logarithmic = !logarithmic;
        build(graph?.scales.x);
    }

    moment.subscribe((_choice, changed) => {
        if (changed.has("session") || changed.has("place") || (view && changed.has("run"))) build();
        else if (changed.has("at")) {
            hovered = null;
            if (graph) reveal(graph, moment.choice.at - offset());
            graph?.redraw(false);
            tell();
        }
    });
    onTheme(() => graph?.redraw(false));
    onKeys({
        "+": ["Zoom in on the moment", () => closer(0.5)],
        "-": ["Zoom out", () => closer(2)],
        "0": ["Show the whole time", all],
        l: ["A logarithmic axis", changeAxis],
    });
    new ResizeObserver(() => graph?.setSize({ width: area.clientWidth, height: graph.height })).observe(area);
}

/** Whether what is in use would be a thin line below what is held: then the axis is logarithmic at first. */
function isFlat(page: Page): boolean {
    return page.sessions.some(({ places }) =>
        places.some(({ layers }) => {
            const most = (key: string) =>
                Math.max(0, ...(layers.find((each) => each.key === key)?.bytes.map(Number) ?? []));
            return most("in_use") > 0 && 16 * most("in_use") < most("cached");
        }),
    );
}

const part = (figure: number | null, whole: number | null) => (figure !== null && whole ? share(figure, whole) : "");

/** A row of the legend: a layer or a run with its colour, its bytes, and what there is to say of these. */
function row(key: string | null, name: string, figure: number | null, more = ""): HTMLTableRowElement {
    const swatch = element("span", "swatch");
    swatch.style.background = key ? variable(key) : "transparent";
    return element(
        "tr",
        key ? "" : "sum",
        element("th", "", swatch, name),
        element("td", "figure", bytes(figure)),
        element("td", "figure quiet", more),
    );
}
