/** The buffers of a window over its time: each from its allocation to its release, as high as its bytes. */
import type uPlot from "uplot";
import { colour, legend, onTheme } from "./colours";
import type { Page, Window } from "./data";
import { bytes, duration, element, noWindow, table } from "./elements";
import { inUse, KINDS, ofRow, shownEvent, standing } from "./holders_at";
import { bufferRow, columns, largestBuffers, picture, shapeAt, sizeAt, totals, type Picture } from "./lifetimes_at";
import { momentsOf, OF_WINDOW, stepped, timeOf, type Moment } from "./moment";
import { chart, heightWith, reveal, zoomButtons, zoomKeys } from "./time_chart";
import { drawMarks } from "./time_marks";

const LISTED = 60; // rows of the table
const STRIP = 64; // pixels of the area of what is chosen
const HOW =
    "Point at a buffer; drag to choose the moment; zoom with the wheel, + and −; move the moment with ← and →.";

function told(window: Window, place: number): string {
    const { name, bytes: size, owner, from, to } = bufferRow(window, place);
    const into = (at: number) => duration(1e6 * (at - window.began));
    const begin = from === null ? "before the window" : into(from);
    const time = `from ${begin} to ${to === null ? "after the window" : into(to)}`;
    return [name, owner.kind, bytes(size), time, owner.line, owner.code.trim()].filter(Boolean).join(" · ");
}

export function mount(place: HTMLElement, _: Page, moment: Moment): void {
    let graph: uPlot | undefined;
    let shown: Picture = { events: [], shapes: [] };
    const frame = element("div", "lifetimes");
    const readout = element("p", "readout");
    const kinds = element("p", "legend");
    const list = element("details");
    /** The chosen moment, in seconds since the window began. */
    const now = () => timeOf(moment.window!, shownEvent(moment.window!, moment.choice.at).event) - moment.window!.began;
    const keys = zoomKeys(() => graph, now);
    const controls = element("div", "controls", ...zoomButtons(keys));
    const none = noWindow();
    const parts = element("div", "view", controls, frame, readout, kinds, list);
    place.append(none, parts);
    Object.assign(frame, { tabIndex: 0, role: "slider", ariaLabel: "The moment in the window" });

    const footRoom = () => (moment.choice.selection === null ? 0 : STRIP);

    function build(): void {
        graph?.destroy();
        const { window } = moment;
        graph = !window ? undefined : chart(frame, {
            lines: [{ key: "text", hidden: true }],
            data: [[0, ...momentsOf(window).map((at) => at - window.began)], [...totals(window)]],
            label,
            footRoom,
            drags: true,
            draw: (u) => {
                paint(u, window);
                drawChosen(u, window);
                drawMarks(u, now());
            },
            onHover: (at, height) => tell(window, at, height),
            onClick: (at) => choose(window.began + at),
        });
    }

    const spanOf = ({ scales: { x } }: uPlot) => ({ from: x.min!, to: x.max! });
    const choose = (at: number) => moment.choose({ at, window: moment.choice.window });

    /** Paint the buffers pixel by pixel, which takes the same time for ten and for ten thousand. */
    function paint(u: uPlot, window: Window): void {
        const { left, top, width, height } = u.bbox;
        const most = u.scales.y.max!;
        shown = picture(window, spanOf(u), width, most / height);
        const sheet = new OffscreenCanvas(width, height).getContext("2d")!;
        const image = sheet.createImageData(width, height);
        const pixels = new Uint32Array(image.data.buffer);
        const { selection, grouping } = moment.choice;
        const chosen = ofRow(window, grouping, selection);
        const inks = Object.fromEntries(KINDS.map((kind) => [kind, [ink(kind, 1), ink(kind, 0.72), ink(kind, 0.18)]]));
        const tops = new Float64Array(width); // of the shapes so far, in bytes
        for (const shape of shown.shapes) {
            const { place, kind, first, last } = shape;
            const isChosen = selection === null || (place >= 0 && chosen[window.owner[place]]);
            const [plain, edge, faint] = inks[kind];
            for (let column = first; column <= last; column++) {
                const low = height - Math.round((tops[column] / most) * height);
                tops[column] += sizeAt(shape, column);
                const high = height - Math.round((tops[column] / most) * height);
                const isTall = low - high > 2 && isChosen;
                const inner = !isChosen ? faint : isTall && place >= 0 && column === first ? edge : plain;
                for (let y = high; y < low; y++) pixels[y * width + column] = inner;
                if (isTall) pixels[high * width + column] = edge;
            }
        }
        sheet.putImageData(image, 0, 0);
        u.ctx.drawImage(sheet.canvas, left, top);
    }

    /** Draw what the chosen row has in use, below the axis of time. */
    function drawChosen(u: uPlot, window: Window): void {
        const { ctx, bbox } = u;
        const { grouping, selection } = moment.choice;
        if (selection === null) return;
        const course = inUse(window, ofRow(window, grouping, selection));
        const most = course.reduce((one, other) => Math.max(one, other), 1);
        const [bottom, high] = [ctx.canvas.height, (STRIP - 20) * devicePixelRatio];
        const row = standing(window, window.peakAt, grouping).rows.find(({ name }) => name === selection);
        ctx.fillStyle = colour(row?.kind ?? "in-use");
        columns(window, spanOf(u), bbox.width, course).forEach((event, column) => {
            const size = (course[event + 1] / most) * high;
            ctx.fillRect(bbox.left + column, bottom - size, 1, size);
        });
        ctx.fillStyle = colour("text");
        ctx.textAlign = "left";
        ctx.fillText(`${selection}: at most ${bytes(most)} in this window`, bbox.left, bottom - high - 5, bbox.width);
    }

    function tell(window: Window, at: number | null, height: number): void {
        const { from, to } = spanOf(graph!);
        const column = at === null ? -1 : Math.floor(((at - from) / (to - from)) * shown.events.length);
        const under = shapeAt(shown, column, height);
        const small = under && `buffers too small to be drawn · ${under.kind} · ${bytes(under.course?.[column])}`;
        readout.textContent = !under ? HOW : under.place < 0 ? small! : told(window, under.place);
    }

    frame.addEventListener("keydown", (key) => {
        const { window } = moment;
        if (!window || key.ctrlKey || key.metaKey || key.altKey) return;
        const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -50, PageDown: 50 }[key.key];
        if (steps) choose(stepped(window, window.began + now(), steps));
        else if (keys[key.key]) keys[key.key][1]();
        else return;
        key.preventDefault();
    });

    moment.on(OF_WINDOW, () => {
        const { window } = moment;
        none.hidden = window !== undefined;
        parts.hidden = window === undefined;
        if (!window) return;
        readout.textContent = HOW;
        const known = new Set(window.owner.map((owner) => window.owners[owner].kind));
        kinds.replaceChildren(...legend(KINDS.filter((kind) => known.has(kind))));
        const at = (time: number | null) => (time === null ? "" : time.toFixed(6));
        const rows = largestBuffers(window, LISTED).map(({ name, owner, bytes: size, from, to }) => {
            return [name, owner.kind, bytes(size), at(from), at(to), owner.line];
        });
        list.replaceChildren(
            element("summary", "", `The largest ${rows.length} of ${window.owner.length} buffers as a table`),
            table(["buffer", "kind", "bytes", "from (s)", "to (s)", "line"], rows, [2, 3, 4]),
        );
    });
    moment.on(OF_WINDOW, build);
    moment.on(["selection", "grouping"], () => {
        graph?.setSize({ width: graph.width, height: heightWith(footRoom()) }); // draws, too
    });
    moment.on([...OF_WINDOW, "at"], () => {
        const { window, choice } = moment;
        if (!window || !graph) return;
        reveal(graph, now());
        graph.redraw(false);
        const { event } = shownEvent(window, choice.at);
        frame.ariaValueMin = "-1";
        frame.ariaValueMax = String(window.times_us.length - 1);
        frame.ariaValueNow = String(event);
        frame.ariaValueText = `${duration(1e6 * now())} into the window, after event ${event}`;
    });
    onTheme(() => graph?.redraw(false));
}

/** The colour of a kind as a pixel. */
function ink(kind: string, alpha: number): number {
    const [red, green, blue] = (colour(kind).match(/[\d.]+/g) ?? []).map(Number);
    return ((Math.round(255 * alpha) << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Seconds since the window began as `1.25 ms`, with the decimals that `step` has. */
function label(seconds: number, step: number): string {
    const [unit, name] = step >= 0.1 ? [1, "s"] : step >= 1e-4 ? [1e-3, "ms"] : [1e-6, "µs"];
    return `${(seconds / unit).toFixed(step >= unit ? 0 : 1)} ${name}`;
}
