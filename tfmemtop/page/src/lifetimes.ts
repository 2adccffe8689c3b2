/** The buffers of a window over its time: each from its allocation to its release, as high as its bytes. */
import { colour, legend, onTheme } from "./colours";
import type { Page, Window } from "./data";
import { button, bytes, duration, element, onSize, table } from "./elements";
import { inUse, KINDS, ofRow, shownEvent, standing } from "./holders_at";
import { bufferRow, columns, eachPart, eventOf, largestBuffers, picture, position } from "./lifetimes_at";
import { shapeAt, whole, type Picture, type Span } from "./lifetimes_at";
import { stepped, timeOf, type Moment } from "./moment";

const LISTED = 60; // rows of the table
const AXIS = 20; // pixels below the picture
const STRIP = 64; // pixels of the area of what is chosen

/** At most `count` round numbers: multiples of a power of 2, or of 1, 2 or 5 times a power of 10. */
function levels(from: number, to: number, count: number, base: number): number[] {
    const power = base ** Math.floor(Math.log((to - from) / count) / Math.log(base));
    const steps = (base === 2 ? [1, 2] : [1, 2, 5, 10]).map((times) => Math.max(1, times * power));
    const step = steps.find((each) => (to - from) / each <= count) ?? power;
    const first = Math.ceil(from / step);
    return Array.from({ length: Math.floor(to / step) - first + 1 }, (_, number) => (first + number) * step);
}

const HOW = "Point at a buffer; drag to choose the moment; zoom around it with + and −; move it with ← and →.";

function told(window: Window, place: number): string {
    const { name, bytes: size, owner, from, to } = bufferRow(window, place);
    const into = (at: number) => duration(1e6 * (at - window.began));
    const begin = from === null ? "before the window" : into(from);
    const time = `from ${begin} to ${to === null ? "after the window" : into(to)}`;
    return [name, owner.kind, bytes(size), time, owner.line, owner.code.trim()].filter(Boolean).join(" · ");
}

export function mount(place: HTMLElement, _: Page, moment: Moment): void {
    const canvas = element("canvas");
    const line = element("div", "moment");
    const frame = element("div", "lifetimes", canvas, line);
    const readout = element("p", "readout");
    const kinds = element("p", "legend");
    const list = element("details");
    let span: Span = { from: 0, to: 1 };
    let shown: Picture | null = null;
    const zooms = [["+", 0.5], ["−", 2], ["all", Infinity]] as const;
    const buttons = zooms.map(([label, factor]) => button(label, "Zoom", () => zoom(factor)));
    const choices = element("div", "controls", ...buttons);
    const none = element("p", "note", "No window of allocations was recorded in this run.");
    const parts = element("div", "view", choices, frame, readout, kinds, list);
    place.append(none, parts);
    Object.assign(frame, { tabIndex: 0, role: "slider", ariaLabel: "The moment in the window" });

    const pen = canvas.getContext("2d")!;
    let [width, height] = [0, 0];
    /** The height of the picture of buffers, in pixels. The area of what is chosen is below it. */
    const upper = () => height - AXIS - (moment.choice.selection === null ? 0 : STRIP);

    function draw(): void {
        const { window } = moment;
        if (!window || !width || !height) return;
        shown = picture(window, span, Math.round(width * devicePixelRatio), 0.5 / (upper() * devicePixelRatio));
        paint(window, shown);
        drawAxes(window, shown);
        drawMoment();
    }

    /** Paints the shapes pixel by pixel, which takes the same time for ten buffers and for ten thousand. */
    function paint(window: Window, shown: Picture): void {
        const [wide, high] = [canvas.width, Math.round(upper() * devicePixelRatio)];
        const image = pen.createImageData(wide, high);
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
        pen.clearRect(0, 0, width, height);
        pen.putImageData(image, 0, 0);
    }

    function drawAxes(window: Window, shown: Picture): void {
        pen.font = "12px system-ui, sans-serif";
        pen.textBaseline = "top";
        pen.fillStyle = pen.strokeStyle = colour("quiet");
        const times = levels(span.from, span.to, width / 90, 10);
        const [unit, name] = span.to >= 1e6 ? [1e6, "s"] : span.to >= 1e3 ? [1e3, "ms"] : [1, "µs"];
        const decimals = Math.max(0, -Math.floor(Math.log10((times[1] - times[0]) / unit)));
        for (const at of times) {
            const x = (width * (at - span.from)) / (span.to - span.from);
            pen.fillRect(x, height - AXIS, 1, 4);
            pen.textAlign = x < 30 ? "left" : x > width - 40 ? "right" : "center";
            pen.fillText(`${(at / unit).toFixed(decimals)} ${name}`, x, height - AXIS + 5);
        }
        pen.textAlign = "left";
        const label = (text: string, y: number) => {
            pen.strokeText(text, 4, y, width - 8);
            pen.fillText(text, 4, y, width - 8);
        };
        pen.strokeStyle = colour("ground");
        pen.lineWidth = 4;
        pen.lineJoin = "round";
        pen.fillStyle = colour("text");
        for (const size of levels(0, shown.most, 4, 2)) {
            const y = Math.round(upper() * (1 - size / shown.most));
            if (!size || y < 20) continue;
            pen.globalAlpha = 0.2;
            pen.fillRect(0, y, width, 1);
            pen.globalAlpha = 1;
            label(bytes(size), y + 3);
        }
        label(bytes(shown.most), 3);
        const { grouping, selection } = moment.choice;
        if (selection === null) return;
        const course = inUse(window, ofRow(window, grouping, selection));
        const events = columns(window, span, canvas.width, course);
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
        if (!window) return;
        const { event } = shownEvent(window, moment.choice.at);
        const place = position(window, span, event);
        line.hidden = place < 0 || place > 1;
        line.style.left = `${100 * place}%`;
        frame.ariaValueMin = "-1";
        frame.ariaValueMax = String(window.times_us.length - 1);
        frame.ariaValueNow = String(event);
        const then = duration(1e6 * (timeOf(window, event) - window.began));
        frame.ariaValueText = `${then} into the window, after event ${event}`;
    }

    /** The colour of a kind as a pixel. */
    function ink(kind: string, alpha: number): number {
        const [red, green, blue] = (colour(kind).match(/[\d.]+/g) ?? []).map(Number);
        return ((Math.round(255 * alpha) << 24) | (blue << 16) | (green << 8) | red) >>> 0;
    }

    /** Make the span `factor` times as long, with the moment in its middle. */
    function zoom(factor: number): void {
        const { window } = moment;
        if (!window) return;
        const most = whole(window).to;
        const long = Math.min(most, Math.max(4, (span.to - span.from) * factor));
        const at = 1e6 * (timeOf(window, shownEvent(window, moment.choice.at).event) - window.began);
        const from = Math.min(most - long, Math.max(0, at - long / 2));
        span = { from, to: from + long };
        draw();
    }

    const choose = (at: number) => moment.choose({ at, window: moment.choice.window });

    function point(pointer: PointerEvent): void {
        const { window } = moment;
        if (!window || !shown) return;
        const [x, y] = [pointer.offsetX, pointer.offsetY];
        if (pointer.buttons & 1) choose(timeOf(window, eventOf(window, span, x / width)));
        const column = Math.min(shown.events.length - 1, Math.max(0, Math.floor(x * devicePixelRatio)));
        const under = y > upper() ? null : shapeAt(shown, column, ((upper() - y) / upper()) * shown.most);
        const small = under && `buffers too small to be drawn · ${under.kind} · ${bytes(under.course?.[column])}`;
        readout.textContent = !under ? HOW : under.place < 0 ? small : told(window, under.place);
    }

    frame.addEventListener("pointermove", point);
    frame.addEventListener("pointerdown", (pointer) => {
        frame.setPointerCapture(pointer.pointerId);
        point(pointer);
    });
    frame.addEventListener("keydown", (key) => {
        const { window } = moment;
        if (!window || key.ctrlKey || key.metaKey || key.altKey) return;
        const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -50, PageDown: 50 }[key.key];
        const factor = { "+": 0.5, "-": 2, "0": Infinity }[key.key];
        if (steps) choose(stepped(window, timeOf(window, shownEvent(window, moment.choice.at).event), steps));
        else if (factor) zoom(factor);
        else return;
        key.preventDefault();
        key.stopPropagation();
    });

    function drawAll(): void {
        const { window } = moment;
        none.hidden = window !== undefined;
        parts.hidden = window === undefined;
        if (!window) return;
        span = whole(window);
        readout.textContent = HOW;
        kinds.replaceChildren(...legend(KINDS.filter((kind) => window.owners.some((owner) => owner.kind === kind))));
        const at = (time: number | null) => (time === null ? "" : time.toFixed(6));
        const rows = largestBuffers(window, LISTED).map(({ name, owner, bytes: size, from, to }) => {
            return [name, owner.kind, bytes(size), at(from), at(to), owner.line];
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
    onSize(canvas, (...size) => {
        [width, height] = size;
        draw();
    });
    onTheme(draw);
}
