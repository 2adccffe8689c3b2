/** Where the buffers of a window lie in a picture: in each column of time, those in use upon each other. Pure. */
import type { Window } from "./data";
import { bufferName, inUse, KINDS } from "./holders_at";
import { lastUpTo, momentsOf, perWindow, timeOf } from "./moment";

/** From where to where time is shown, in seconds since the window began. */
export interface Span {
    from: number;
    to: number;
}

/** What is drawn as one shape: a buffer, or all small ones of a kind: `place` is -1, `course` has a size a column. */
export interface Shape {
    place: number;
    kind: string;
    first: number; // a column
    last: number;
    bytes: number;
    course: Float64Array | null;
}

/** The picture's columns: the event that each shows, and the shapes from below. */
export interface Picture {
    events: number[];
    shapes: Shape[];
}

/** For each of `count` columns its event with most in use, so that no peak is lost, or the last event before it. */
export function columns(window: Window, { from, to }: Span, count: number, total: Float64Array): number[] {
    const lastAt = (part: number) => lastUpTo(momentsOf(window), window.began + from + part * (to - from) + 5e-7);
    const events: number[] = [];
    let before = lastAt(0);
    for (let column = 0; column < count; column++) {
        const last = lastAt((column + 1) / count);
        let best = Math.min(before + (column ? 1 : 0), last);
        for (let event = best + 1; event <= last; event++) if (total[event + 1] >= total[best + 1]) best = event;
        events.push(best);
        before = last;
    }
    return events;
}

/** The bytes in use before the first event of a window and after each. */
export const totals = perWindow((window) => inUse(window));

/** The places of a window's buffers in their order. Of those of one event, the last to be released is first. */
const stacked = perWindow((window): number[] => {
    const kinds = window.owners.map((owner) => KINDS.indexOf(owner.kind));
    const kind = (place: number) => kinds[window.owner[place]];
    const end = (place: number) => (window.to[place] === -1 ? Infinity : window.to[place]);
    const order = (a: number, b: number) => window.from[a] - window.from[b] || kind(a) - kind(b) || end(b) - end(a);
    return [...window.owner.keys()].sort(order);
});

/** The picture of a window: what stays is below what is released. Buffers below `least` bytes are one shape a kind. */
export function picture(window: Window, span: Span, count: number, least: number): Picture {
    const events = columns(window, span, count, totals(window));
    const small = Object.fromEntries(KINDS.map((kind) => [kind, new Float64Array(count + 1)])); // changes a column
    small.unknown[0] = window.unknown;
    const staying: Shape[] = [];
    const released: Shape[] = [];
    for (const place of stacked(window)) {
        const { kind } = window.owners[window.owner[place]];
        const [to, bytes] = [window.to[place], window.bytes[place]];
        const first = lastUpTo(events, window.from[place] - 1) + 1;
        const last = to === -1 ? count - 1 : lastUpTo(events, to - 1);
        if (first > last) continue;
        if (bytes < least) {
            small[kind][first] += bytes;
            small[kind][last + 1] -= bytes;
        } else (to === -1 ? staying : released).push({ place, kind, first, last, bytes, course: null });
    }
    const rest = Object.entries(small).map(([kind, course]): Shape => {
        for (let column = 1; column < count; column++) course[column] += course[column - 1];
        return { place: -1, kind, first: 0, last: count - 1, bytes: 0, course };
    });
    return { events, shapes: [...staying, ...rest, ...released] };
}

/** The bytes of a shape in one of its columns. */
export const sizeAt = ({ course, bytes }: Shape, column: number) => course?.[column] ?? bytes;

/** The shape at a height, in bytes, of a column. */
export function shapeAt(shown: Picture, column: number, height: number): Shape | undefined {
    let top = 0;
    return shown.shapes.find((shape) => {
        if (shape.first <= column && column <= shape.last) top += sizeAt(shape, column);
        return height < top;
    });
}

/** A buffer as a row; `from` and `to` are seconds of the session, `null` if they are outside of the window. */
export function bufferRow(window: Window, place: number) {
    const owner = window.owners[window.owner[place]];
    const at = (event: number) => (event === -1 ? null : timeOf(window, event));
    const [name, size] = [bufferName(owner), window.bytes[place]];
    return { name, bytes: size, owner, from: at(window.from[place]), to: at(window.to[place]) };
}

/** The window's largest buffers, as `holders --lifetimes` has them. */
export function largestBuffers(window: Window, count: number) {
    const places = [...window.owner.keys()].filter((place) => window.address[place] !== -1);
    places.sort((a, b) => window.bytes[b] - window.bytes[a] || window.from[a] - window.from[b]);
    return places.slice(0, count).map((place) => bufferRow(window, place));
}
