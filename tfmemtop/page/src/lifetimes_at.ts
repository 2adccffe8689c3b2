/** Where the buffers of a window lie in a picture: columns of time, and in each the buffers in use upon each other. Pure. */
import type { Window } from "./data";
import { bufferName, inUse, KINDS, sum } from "./holders_at";
import { lastUpTo, momentsOf } from "./moment";

/** From where to where time is shown: in µs of the window, or in events. */
export interface Span {
    byEvent: boolean;
    from: number;
    to: number;
}

/** What is drawn as one shape: a buffer, or all small ones of a kind (`place` is -1) with their bytes in each column. */
export interface Shape {
    place: number;
    kind: string;
    first: number; // a column
    last: number;
    bytes: number;
    course: number[] | null;
}

/** The picture's columns: the event that each shows, and the shapes from below. */
export interface Picture {
    events: number[];
    shapes: Shape[];
    most: number; // bytes
}

export const whole = (window: Window, byEvent: boolean): Span => ({
    byEvent,
    from: byEvent ? -1 : 0,
    to: Math.max(1, byEvent ? window.times_us.length : sum(window.times_us)),
});

/** Where an event is in the span, 0 for its left end and 1 for its right end. */
export function position(window: Window, span: Span, event: number): number {
    const at = span.byEvent ? event + 0.5 : event < 0 ? 0 : 1e6 * (momentsOf(window)[event] - window.began);
    return (at - span.from) / (span.to - span.from);
}

/** The last event at or before a position in the span. */
export function eventOf(window: Window, span: Span, position: number): number {
    const at = span.from + position * (span.to - span.from);
    const event = span.byEvent ? Math.ceil(at) - 1 : lastUpTo(momentsOf(window), window.began + (at + 0.5) / 1e6);
    return Math.max(-1, Math.min(window.times_us.length - 1, event));
}

/** For each of `count` columns its event with most in use, so that no peak is lost; if it has none, the last one before. */
export function columns(window: Window, span: Span, count: number, total: Float64Array): number[] {
    const events: number[] = [];
    let before = eventOf(window, span, 0);
    for (let column = 0; column < count; column++) {
        const last = eventOf(window, span, (column + 1) / count);
        let best = Math.min(before + (column ? 1 : 0), last);
        for (let event = best + 1; event <= last; event++) if (total[event + 1] >= total[best + 1]) best = event;
        events.push(best);
        before = last;
    }
    return events;
}

const stacks = new WeakMap<Window, number[]>();

/** The places of a window's buffers, from the bottom of the stack: those that stay, by kind if they are older than the window. */
function stacked(window: Window): number[] {
    const known = stacks.get(window);
    if (known) return known;
    const kind = (place: number) => KINDS.indexOf(window.owners[window.owner[place]].kind);
    const end = (place: number) => (window.to[place] === -1 ? Infinity : window.to[place]);
    const found = [...window.owner.keys()].sort((a, b) => {
        const apart = Number(window.to[a] !== -1) - Number(window.to[b] !== -1) || window.from[a] - window.from[b];
        if (apart) return apart;
        const older = window.to[a] === -1 && window.from[a] === -1;
        return older ? kind(a) - kind(b) || window.bytes[b] - window.bytes[a] : end(b) - end(a);
    });
    stacks.set(window, found);
    return found;
}

/** The picture of a window. Buffers of less than `least` of the highest column are drawn as one shape for each kind. */
export function picture(window: Window, span: Span, count: number, least: number): Picture {
    const total = inUse(window);
    const events = columns(window, span, count, total);
    const most = Math.max(1, ...events.map((event) => total[event + 1]));
    const small = (place: number) => window.bytes[place] < least * most;
    const shapes: Shape[] = [];
    const bands = new Map<string, Float64Array>();
    let temporary = -1; // the place in `shapes` of the first buffer that does not stay
    for (const place of stacked(window)) {
        const { kind } = window.owners[window.owner[place]];
        const [from, to] = [window.from[place], window.to[place]];
        if (small(place)) {
            const band = bands.get(kind) ?? new Float64Array(total.length);
            bands.set(kind, band);
            band[from + 1] += window.bytes[place];
            if (to !== -1) band[to + 1] -= window.bytes[place];
            continue;
        }
        if (temporary < 0 && to !== -1) temporary = shapes.length;
        const first = lastUpTo(events, from - 1) + 1;
        const last = to === -1 ? count - 1 : lastUpTo(events, to - 1);
        if (first <= last) shapes.push({ place, kind, first, last, bytes: window.bytes[place], course: null });
    }
    if (window.unknown) {
        const band = bands.get("unknown") ?? new Float64Array(total.length);
        band[0] += window.unknown;
        bands.set("unknown", band);
    }
    const found = KINDS.filter((kind) => bands.has(kind)).map((kind): Shape => {
        const band = bands.get(kind)!;
        for (let event = 1; event < band.length; event++) band[event] += band[event - 1];
        const course = events.map((event) => band[event + 1]);
        return { place: -1, kind, first: 0, last: count - 1, bytes: 0, course };
    });
    shapes.splice(temporary < 0 ? shapes.length : temporary, 0, ...found);
    return { events, shapes, most };
}

/** Call `draw` for each part of a shape in a column, with the bytes below it. */
export function eachPart(shown: Picture, draw: (shape: Shape, column: number, below: number, bytes: number) => void): void {
    const heights = new Float64Array(shown.events.length);
    for (const shape of shown.shapes) {
        for (let column = shape.first; column <= shape.last; column++) {
            const size = shape.course ? shape.course[column] : shape.bytes;
            draw(shape, column, heights[column], size);
            heights[column] += size;
        }
    }
}

/** The shape at a height, in bytes, of a column. */
export function shapeAt(shown: Picture, column: number, height: number): Shape | null {
    let below = 0;
    for (const shape of shown.shapes) {
        if (column < shape.first || column > shape.last) continue;
        below += shape.course ? shape.course[column] : shape.bytes;
        if (below > height) return shape;
    }
    return null;
}

/** A buffer as a row of text: its name, kind, line, and the seconds of the session from which to which it was in use. */
export interface BufferRow {
    name: string;
    kind: string;
    bytes: number;
    line: string;
    code: string;
    from: number | null; // it is older than the window
    to: number | null; // it is not released in the window
}

export function bufferRow(window: Window, place: number): BufferRow {
    const owner = window.owners[window.owner[place]];
    const at = (event: number) => (event === -1 ? null : momentsOf(window)[event]);
    return {
        name: bufferName(owner),
        kind: owner.kind,
        bytes: window.bytes[place],
        line: owner.line,
        code: owner.code.trim(),
        from: at(window.from[place]),
        to: at(window.to[place]),
    };
}

/** The window's largest buffers, as `holders --lifetimes` has them. */
export function largestBuffers(window: Window, count: number): BufferRow[] {
    const places = [...window.owner.keys()].filter((place) => window.address[place] !== -1);
    const start = (place: number) => (window.from[place] < 0 ? window.began : momentsOf(window)[window.from[place]]);
    places.sort((a, b) => window.bytes[b] - window.bytes[a] || start(a) - start(b));
    return places.slice(0, count).map((place) => bufferRow(window, place));
}
