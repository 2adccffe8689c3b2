/** Where the buffers of a window lie in a picture: in each column of time, those in use upon each other. Pure. */
import type { Window } from "./data";
import { bufferName, inUse, KINDS, sum } from "./holders_at";
import { lastUpTo, momentsOf, timeOf } from "./moment";

/** From where to where time is shown, in µs of the window. */
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
    course: number[] | null;
}

/** The picture's columns: the event that each shows, and the shapes from below. */
export interface Picture {
    events: number[];
    shapes: Shape[];
    most: number; // bytes
}

export const whole = (window: Window): Span => ({ from: 0, to: Math.max(1, sum(window.times_us)) });

/** Where an event is in the span, 0 for its left end and 1 for its right end. */
export function position(window: Window, { from, to }: Span, event: number): number {
    return (1e6 * (timeOf(window, event) - window.began) - from) / (to - from);
}

/** The last event at or before a position in the span. */
export function eventOf(window: Window, { from, to }: Span, position: number): number {
    return lastUpTo(momentsOf(window), window.began + (from + position * (to - from) + 0.5) / 1e6);
}

/** For each of `count` columns its event with most in use, so that no peak is lost, or the last event before it. */
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

/** The places of a window's buffers in their order. Of those of one event, the last to be released is first. */
function stacked(window: Window): number[] {
    const kind = (place: number) => KINDS.indexOf(window.owners[window.owner[place]].kind);
    const end = (place: number) => (window.to[place] === -1 ? Infinity : window.to[place]);
    const order = (a: number, b: number) => window.from[a] - window.from[b] || kind(a) - kind(b) || end(b) - end(a);
    return [...window.owner.keys()].sort(order);
}

/**
 * The picture of a window: what stays is below what is released. Owners all of whose buffers have less than `least` of
 * the highest column are drawn as one shape for each kind.
 */
export function picture(window: Window, span: Span, count: number, least: number): Picture {
    const total = inUse(window);
    const events = columns(window, span, count, total);
    const most = Math.max(1, ...events.map((event) => total[event + 1]));
    const largest = window.owners.map(() => 0);
    window.owner.forEach((owner, place) => (largest[owner] = Math.max(largest[owner], window.bytes[place])));
    const isSmall = largest.map((size) => size < least * most);
    const whole = { place: -1, first: 0, last: count - 1 };
    const staying: Shape[] = [{ ...whole, kind: "unknown", bytes: window.unknown, course: null }];
    const released: Shape[] = [];
    for (const place of stacked(window)) {
        if (isSmall[window.owner[place]]) continue;
        const { kind } = window.owners[window.owner[place]];
        const to = window.to[place];
        const first = lastUpTo(events, window.from[place] - 1) + 1;
        const last = to === -1 ? count - 1 : lastUpTo(events, to - 1);
        const shape = { place, kind, first, last, bytes: window.bytes[place], course: null };
        if (first <= last) (to === -1 ? staying : released).push(shape);
    }
    const small = KINDS.flatMap((kind): Shape[] => {
        const chosen = window.owners.map((owner, which) => isSmall[which] && owner.kind === kind);
        if (!chosen.includes(true)) return [];
        const course = inUse(window, chosen);
        return [{ ...whole, kind, bytes: 0, course: events.map((event) => course[event + 1]) }];
    });
    return { events, most, shapes: [...staying, ...small, ...released] };
}

type Draw = (shape: Shape, column: number, below: number, bytes: number) => void;

/** Call `draw` for each part of a shape in a column, with the bytes below it. */
export function eachPart(shown: Picture, draw: Draw): void {
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
    let found: Shape | null = null;
    eachPart(shown, (shape, at, below, bytes) => {
        if (at === column && below <= height && height < below + bytes) found = shape;
    });
    return found;
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
