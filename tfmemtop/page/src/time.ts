/** Memory over time: the layers of a GPU or of the CPU's pool, or the runs laid over each other. */
import uPlot from "uplot";
import { onTheme, swatch } from "./colours";
import type { Page, Place, Session } from "./data";
import { button, bytes, clock, element, refill, select, share, table } from "./elements";
import { onKeys } from "./keys";
import { endOf, lastUpTo, runAt, type Moment } from "./moment";
import { chart, reveal, zoomButtons, zoomKeys, type Chart } from "./time_chart";
import { courses, stacked, sum, type Course } from "./time_data";
import { drawMarks, headRoom } from "./time_marks";

const RUNS = ["variables", "loss", "workspace", "gradients", "activations", "xla", "optimizer", "tensors"];
const VIEWS = ["layers", "runs over each other: in use", "runs over each other: total used"];

/** What is drawn in a chart: the layers or the runs. */
type Drawn = Pick<Chart, "lines" | "data" | "range" | "headRoom" | "reach" | "draw">;

/** A row of the legend: a layer or a run with the key of its colour, its bytes, and what there is to say of these. */
type Row = [key: string, name: string, size: number | null, more?: string];

export function mount(place: HTMLElement, page: Page, moment: Moment): void {
    let view = 0;
    let logarithmic = isFlat(page);
    let hovered: number | null = null;
    let graph: uPlot | undefined;
    let lines: Course[] = [];

    const controls = element("div", "controls");
    const area = element("div", "graph");
    const heading = element("h3", "");
    const figures = element("div");
    heading.role = "status"; // what a key has chosen is read aloud
    area.role = "img";
    place.append(controls, element("div", "beside", area, element("div", "legend", heading, figures)));

    /** The moment in the graph's own seconds: where runs are laid over each other, since the run began. */
    const offset = () => (view ? (moment.run?.began ?? 0) : 0);
    const runOf = (at: number) => moment.session.runs.at(runAt(moment.session, at));
    const keys = zoomKeys(() => graph, () => moment.choice.at - offset());

    /** Make the graph anew. It goes on to show *range*; else all, or the runs where these took a part of the time. */
    function build(range?: uPlot.Scale): void {
        const { session, place: card } = moment;
        graph?.destroy();
        graph = undefined;
        area.replaceChildren();
        lines = card && view ? courses(page, session, card, view === 2) : [];
        const drawn = !card?.times.length ? undefined : view ? runs() : layers(session, card);
        if (drawn) graph = chart(area, { ...drawn, range: range ?? drawn.range, label, logarithmic, onHover, onClick });
        else area.append(element("p", "note", "Memory was not read in this session."));
        steer();
        tell();
    }

    function layers(session: Session, card: Place): Drawn {
        return {
            lines: card.layers.map(({ key }) => ({ key, filled: true })),
            data: stacked(card, session.ended),
            range: ofRuns(session, card),
            headRoom: headRoom(session),
            reach: [...Object.values(card.limits), card.total ?? 0],
            draw: (u) => drawMarks(u, moment.choice.at, { session, card, chosen: moment.choice.run }),
        };
    }

    function runs(): Drawn {
        return {
            lines: lines.map((_line, number) => ({ key: RUNS[number % RUNS.length] })),
            data: uPlot.join(lines.map(({ times, bytes }) => [times, bytes])),
            draw: (u) => drawMarks(u, moment.choice.at - offset()),
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
        const toggle = button("logarithmic", "A logarithmic axis (l)", changeAxis);
        toggle.ariaPressed = String(logarithmic);
        const several = page.sessions.flatMap((session) => session.runs).length > 1;
        const places = moment.session.places.map(({ name, model }) => (model ? `${name}, ${model}` : name));
        refill(
            controls,
            select("of", places, moment.choice.place, (place) => moment.choose({ place })),
            select("show", several ? VIEWS : [], view, (number) => {
                view = number;
                build();
            }),
            toggle,
            ...zoomButtons(keys),
            button("peak", "Go to the peak (p)", () => moment.choose({ at: moment.peakAt })),
            element("span", "note", "Drag to zoom, click to choose a moment."),
        );
    }

    function tell(): void {
        const at = hovered ?? moment.choice.at;
        const run = runOf(at);
        const now = run?.phases.filter(({ began, ended }) => began <= at && at <= (ended ?? Infinity));
        const phases = now?.map((phase) => phase.label) ?? [];
        const where = [`at ${clock(at - offset())}`, run && !view && `run ${run.number}`, ...phases];
        heading.textContent = where.filter(Boolean).join(", ");
        const rows = view ? runRows(at - offset()) : layerRows(at);
        const cells = rows.map(([key, name, size, more = ""]) => {
            const tag = key ? "span" : "b";
            return [element(tag, "", swatch(key), name), element(tag, "", bytes(size)), element("span", "quiet", more)];
        });
        figures.replaceChildren(table([], cells, [1, 2]));
        const spoken = rows.map(([, name, size, more = ""]) => `${name} ${bytes(size)} ${more}`);
        area.ariaLabel = `Memory over time, ${heading.textContent}: ${spoken.join("; ")}`;
    }

    function layerRows(at: number): Row[] {
        const card = moment.place;
        if (!card) return [];
        const index = lastUpTo(card.times, at);
        const used = sum(card.layers.map(({ bytes }) => bytes[index]));
        const rows = card.layers.map(({ key, name, bytes }): Row => {
            const size = bytes[index] ?? null;
            return [key, name, size, size !== null && used ? share(size, used) : ""];
        });
        rows.reverse().push(["", card.total === null ? "pool" : "total used", used]);
        const limit = card.limits[runOf(at)?.number ?? 0];
        if (limit !== undefined) rows.push(["", "limit of the pool", limit]);
        if (card.total !== null) rows.push(["", `${card.name} has`, card.total]);
        return rows;
    }

    function runRows(at: number): Row[] {
        return lines.map(({ name, times, bytes: sizes }, number) => {
            const size = at > (times.at(-1) ?? 0) ? null : (sizes[lastUpTo(times, at)] ?? null);
            return [RUNS[number % RUNS.length], name, size, `peak ${bytes(Math.max(...sizes.map(Number)))}`];
        });
    }

    function changeAxis(): void {
        logarithmic = !logarithmic;
        build(graph?.scales.x);
    }

    moment.on(["session", "place", "run", "at"], (_choice, changed) => {
        if (changed.has("session") || changed.has("place") || (view && changed.has("run"))) return build();
        hovered = null;
        if (graph) reveal(graph, moment.choice.at - offset());
        graph?.redraw(false);
        tell();
    });
    onTheme(() => graph?.redraw(false));
    onKeys({ ...keys, l: ["A logarithmic axis", changeAxis] });
}

/** Whether what is in use would be a thin line below what is held: then the axis is logarithmic at first. */
function isFlat({ sessions }: Page): boolean {
    return sessions.flatMap(({ places }) => places).some(({ layers }) => {
        const sizes = (key: string) => layers.find((each) => each.key === key)?.bytes ?? [];
        const most = (key: string) => Math.max(0, ...sizes(key).map(Number));
        return most("in_use") > 0 && 16 * most("in_use") < most("cached");
    });
}

/** The time of the runs, where they took less than two thirds of the session. */
function ofRuns(session: Session, { times }: Place): uPlot.Scale | undefined {
    const first = session.runs[0]?.began ?? 0;
    const length = endOf(session, session.runs.length - 1) - first;
    if (length <= 0 || length >= session.ended / 1.5) return undefined;
    return { min: Math.max(times[0], first - 0.03 * length), max: first + 1.03 * length };
}

function label(at: number, step: number): string {
    return step >= 1 ? clock(at) : `${clock(at)}${(at % 1).toFixed(step >= 0.1 ? 1 : 3).slice(1)}`;
}
