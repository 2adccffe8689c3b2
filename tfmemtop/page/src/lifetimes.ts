/** The buffers of a window over its time: each from its allocation to its release, as high as its bytes. */
import { colour, legend, onTheme } from "./colours";
import type { Page, Window } from "./data";
import { button, bytes, duration, element, onSize, table } from "./elements";
import { inUse, KINDS, ofRow, shownEvent, standing } from "./holders_at";
import { bufferRow, columns, eachPart, eventOf, largestBuffers, picture, position, shapeAt, whole } from "./lifetimes_at";
import type { BufferRow, Picture, Shape, Span } from "./lifetimes_at";
import { stepped, timeOf, type Moment } from "./moment";

const LISTED = 60; // rows of the table
const AXIS = 20; // pixels below the picture
const STRIP = 64; // pixels of the area of what is chosen

/** At most `count` round numbers from one to the other: multiples of a power of 2, or of 1, 2 or 5 times a power of 10. */
function levels(from: number, to: number, count: number, base: number): number[] {
    const power = base ** Math.floor(Math.log((to - from) / count) / Math.log(base));
    const step = Math.max(1, (base === 2 ? [1, 2] : [1, 2, 5, 10]).map((times) => times * power).find((step) => (to - from) / step <= count) ?? power);
    const first = Math.ceil(from / step);
    return Array.from({ length: Math.floor(to / step) - first + 1 }, (_, number) => (first + number) * step);
}

function told(row: BufferRow, window: Window): string {
    const since = (at: number | null, otherwise: string) => (at === null ? otherwise : duration(1e6 * (at - window.began)));
    const time = `from ${since(row.from, "before the window")} to ${since(row.to, "after the window")}`;
    return [row.name, row.kind, bytes(row.bytes), time, row.line, row.code].filter(Boolean).join(" · ");
}

export function mount(place: HTMLElement, page: Page, moment: Moment): void {
    void page;
    const still = element("canvas"); // the buffers
    const moving = element("canvas"); // the moment and the buffer under the pointer
    const frame = element("div", "lifetimes", still, moving);
    const readout = element("p", "readout");
    const kinds = element("p", "legend");
    const list = element("details");
    let span: Span = { byEvent: false, from: 0, to: 1 };
    let shown: Picture | null = null;
    let under: Shape | null = null;
    const scales = ["time", "events"].map((label, which) =>
        button(label, which ? "Each event is as wide as any other" : "The width is time", () => {
            if (!moment.window) return;
            span = whole(moment.window, which === 1);
            draw();
        }),
    );
    const all = button("whole window", "Show the whole window (0)", () => zoom(0.5, 0));
    const choices = element("div", "choices", "Width by ", ...scales, all);
    const none = element("p", "note", "No window of allocations was recorded in this run.");
    const parts = element("div", "view", choices, frame, readout, kinds, list);
    place.append(none, parts);
    Object.assign(frame, { tabIndex: 0, role: "slider", ariaLabel: "The moment in the window" });

    const context = (canvas: HTMLCanvasElement) => canvas.getContext("2d")!;
    let [width, height] = [0, 0];
    /** The height of the picture of buffers, in pixels. The area of what is chosen is below it. */
    const upper = () => height - AXIS - (moment.choice.selection === null ? 0 : STRIP);

    function draw(): void {
        const { window } = moment;
        if (!window || !width || !height) return;
        under = null;
        shown = picture(window, span, Math.round(width * devicePixelRatio), 0.5 / (upper() * devicePixelRatio));
        paint(window, shown);
        drawAxes(window, shown);
        drawMoment();
        scales.forEach((each, which) => (each.ariaPressed = String(span.byEvent === (which === 1))));
    }

    /** Paints the shapes pixel by pixel, which takes the same time for ten buffers and for ten thousand. */
    function paint(window: Window, shown: Picture): void {
        const [wide, high] = [still.width, Math.round(upper() * devicePixelRatio)];
        const image = context(still).createImageData(wide, high);
        const pixels = new Uint32Array(image.data.buffer);
        const chosen = ofRow(window, moment.choice.grouping, moment.choice.selection);
        const { selection } = moment.choice;
        const inks = Object.fromEntries(KINDS.map((kind) => [kind, [ink(kind, 1), ink(kind, 0.72), ink(kind, 0.18)]]));
        eachPart(shown, ({ place, kind, first }, column, below, size) => {
            const top = high - Math.round(((below + size) / shown.most) * high);
            const bottom = high - Math.round((below / shown.most) * high);
            const isChosen = selection === null || (place >= 0 && chosen[window.owner[place]]);
            const [plain, edge, faint] = inks[kind];
            const inner = !isChosen ? faint : column === first && place >= 0 && bottom - top > 2 ? edge : plain;
            for (let y = top; y < bottom; y++) pixels[y * wide + column] = inner;
            if (bottom - top > 2 && isChosen) pixels[top * wide + column] = edge;
        });
        context(still).clearRect(0, 0, width, height);
        context(still).putImageData(image, 0, 0);
    }

    function drawAxes(window: Window, shown: Picture): void {
        const pen = context(still);
        pen.font = "12px system-ui, sans-serif";
        pen.textBaseline = "top";
        pen.fillStyle = pen.strokeStyle = colour("quiet");
        for (const at of levels(span.from, span.to, width / 90, 10)) {
            const x = (width * (at - span.from)) / (span.to - span.from);
            pen.fillRect(x, height - AXIS, 1, 4);
            pen.textAlign = x < 30 ? "left" : x > width - 40 ? "right" : "center";
            pen.fillText(span.byEvent ? `event ${at}` : duration(at), x, height - AXIS + 5);
        }
        pen.textAlign = "left";
        const label = (text: string, y: number) => {
            pen.strokeText(text, 4, y, width - 8);
            pen.fillText(text, 4, y, width - 8);
        };
        pen.strokeStyle = colour("ground");
        pen.lineWidth = 4;
        pen.lineJoin = "round";
        for (const size of levels(0, shown.most, 4, 2)) {
            const y = Math.round(upper() * (1 - size / shown.most));
            if (!size || y < 20) continue;
            pen.globalAlpha = 0.3;
            pen.fillRect(0, y, width, 1);
            pen.globalAlpha = 1;
            label(bytes(size), y + 3);
        }
        pen.fillStyle = colour("text");
        label(bytes(shown.most), 3);
        const { grouping, selection } = moment.choice;
        if (selection === null) return;
        const course = inUse(window, ofRow(window, grouping, selection));
        const events = columns(window, span, still.width, course);
        const most = Math.max(1, ...course);
        const bottom = upper() + STRIP;
        const chosen = standing(window, window.peakAt, grouping).rows.find((row) => row.name === selection);
        pen.fillStyle = colour(chosen?.kind ?? "in-use");
        events.forEach((event, column) => {
            const high = (course[event + 1] / most) * (STRIP - 20);
            pen.fillRect(column / devicePixelRatio, bottom - high, 1 / devicePixelRatio, high);
        });
        pen.fillStyle = colour("text");
        label(`${selection}: at most ${bytes(most)} in this window`, upper() + 4);
    }

    function drawMoment(): void {
        const { window } = moment;
        const pen = context(moving);
        pen.clearRect(0, 0, width, height);
        if (!window || !shown) return;
        if (under) {
            pen.fillStyle = colour("text");
            const of = under;
            const [high, most] = [upper(), shown.most];
            eachPart({ ...shown, shapes: shown.shapes.slice(0, shown.shapes.indexOf(of) + 1) }, (shape, column, below, size) => {
                if (shape !== of) return;
                const tall = Math.max(1, (size / most) * high);
                pen.fillRect(column / devicePixelRatio, high - ((below + size) / most) * high, 1 / devicePixelRatio, tall);
            });
        }
        const { event } = shownEvent(window, moment.choice.at);
        const x = Math.round(position(window, span, event) * width);
        pen.fillStyle = colour("limit");
        pen.fillRect(Math.min(width - 2, Math.max(0, x - 1)), 0, 2, height - AXIS);
        const then = duration(event < 0 ? 0 : 1e6 * (timeOf(window, event) - window.began));
        frame.ariaValueMax = String(window.times_us.length - 1);
        frame.ariaValueMin = "-1";
        frame.ariaValueNow = String(event);
        frame.ariaValueText = `${then} into the window, after event ${event}`;
    }

    /** The colour of a kind as a pixel. */
    function ink(kind: string, alpha: number): number {
        const [red, green, blue] = (colour(kind).match(/[\d.]+/g) ?? []).map(Number);
        return ((Math.round(255 * alpha) << 24) | (blue << 16) | (green << 8) | red) >>> 0;
    }

    /** Make the span `factor` times as long around a position in it; 0 is the whole window. */
    function zoom(around: number, factor: number): void {
        const { window } = moment;
        if (!window) return;
        const most = whole(window, span.byEvent);
        const long = Math.min(most.to - most.from, Math.max(4, (span.to - span.from) * factor));
        const at = span.from + around * (span.to - span.from);
        const from = Math.min(most.to - long, Math.max(most.from, at - around * long));
        span = factor ? { ...span, from, to: from + long } : most;
        draw();
    }

    const choose = (at: number) => moment.choose({ at, window: moment.choice.window });

    frame.addEventListener("pointermove", (pointer) => {
        const { window } = moment;
        if (!window || !shown) return;
        const box = still.getBoundingClientRect();
        const [x, y] = [pointer.clientX - box.left, pointer.clientY - box.top];
        if (pointer.buttons & 1) choose(timeOf(window, eventOf(window, span, x / box.width)));
        const column = Math.min(shown.events.length - 1, Math.max(0, Math.floor(x * devicePixelRatio)));
        under = y > upper() ? null : shapeAt(shown, column, ((upper() - y) / upper()) * shown.most);
        const small = under && `buffers too small to be drawn · ${under.kind} · ${bytes(under.course?.[column])}`;
        readout.textContent = !under ? HOW : under.place < 0 ? small : told(bufferRow(window, under.place), window);
        drawMoment();
    });
    frame.addEventListener("pointerdown", (pointer) => {
        const { window } = moment;
        if (!window || pointer.button) return;
        frame.setPointerCapture(pointer.pointerId);
        const box = still.getBoundingClientRect();
        choose(timeOf(window, eventOf(window, span, (pointer.clientX - box.left) / box.width)));
    });
    frame.addEventListener("pointerleave", () => {
        under = null;
        drawMoment();
    });
    frame.addEventListener("wheel", (wheel) => {
        if (!wheel.ctrlKey && document.activeElement !== frame) return; // the page scrolls
        wheel.preventDefault();
        const box = still.getBoundingClientRect();
        zoom((wheel.clientX - box.left) / box.width, wheel.deltaY < 0 ? 0.8 : 1.25);
    });
    frame.addEventListener("keydown", (key) => {
        const { window } = moment;
        if (!window || key.ctrlKey || key.metaKey || key.altKey) return;
        const { event } = shownEvent(window, moment.choice.at);
        const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -50, PageDown: 50 }[key.key];
        const factor = { "+": 0.5, "-": 2, "0": 0 }[key.key];
        if (steps) choose(stepped(window, timeOf(window, event), steps));
        else if (factor !== undefined) zoom(position(window, span, event), factor);
        else return;
        key.preventDefault();
        key.stopPropagation();
    });

    const HOW = "Point at a buffer; drag to choose the moment. With the picture chosen, the wheel or + and - zoom.";

    function drawAll(): void {
        const { window } = moment;
        none.hidden = window !== undefined;
        parts.hidden = window === undefined;
        if (!window) return;
        span = whole(window, span.byEvent);
        readout.textContent = HOW;
        kinds.replaceChildren(...legend(KINDS.filter((kind) => window.owners.some((owner) => owner.kind === kind))));
        const at = (time: number | null) => (time === null ? "" : time.toFixed(6));
        const rows = largestBuffers(window, LISTED).map(({ name, kind, bytes: size, line, from, to }) => {
            return [name, kind, bytes(size), at(from), at(to), line];
        });
        const count = window.owner.length;
        list.replaceChildren(
            element("summary", "", `The largest ${Math.min(LISTED, count)} of ${count} buffers as a table`),
            table(["buffer", "kind", "bytes", "from (s)", "to (s)", "line"], rows, [2, 3, 4]),
        );
    }

    moment.subscribe((_, changed) => {
        const window = (["session", "run", "pool", "window"] as const).some((key) => changed.has(key));
        if (window) drawAll();
        if (window || changed.has("selection") || changed.has("grouping")) draw();
        else drawMoment();
    });
    onSize(still, (...size) => {
        [width, height] = size;
        draw();
    });
    onSize(moving, drawMoment);
    onTheme(draw);
}
