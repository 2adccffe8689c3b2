/** Who holds a pool's memory after an event of a window. Pure. The rows are those of `tfmemtop holders --json`. */

import type { Owner, Window } from "./data";
import { eventAt, type Grouping } from "./moment";

/** The kinds in the order of a stack: those that stay are below. */
export const KINDS = [
    "variables", "optimizer", "before", "tensors", "results", "input", "activations",
    "gradients", "loss", "workspace", "xla", "rounding", "unknown",
];

const OF_KINDS: Record<string, string> = {
    before: "from before the window",
    tensors: "eager tensors",
    xla: "XLA's buffers",
    results: "results of compiled calls",
    rounding: "rounding of XLA's buffers",
};

export interface Row {
    name: string;
    kind: string; // that of most of its bytes
    bytes: number;
    count: number;
}

/** The bytes of `rows`, the largest first, of `unknown`, and of `leftOut` add up to `total`. */
export interface Standing {
    rows: Row[];
    unknown: number;
    leftOut: number; // of buffers that the page does not have; known at the peak only
    total: number;
}

/** The name of the row in which an owner's memory is counted. */
export function rowName(owner: Owner, by: Grouping): string {
    if (by !== "kind" && owner[by]) return owner[by];
    return OF_KINDS[owner.kind] ?? (by === "shape" ? "no shape known" : owner.kind);
}

/** The name of a buffer: its layer, and the last part of its operation. */
export function bufferName(owner: Owner): string {
    if (!owner.layer || owner.layer === owner.op) return rowName(owner, "op");
    return `${owner.layer}/${owner.op.slice(owner.op.lastIndexOf("/") + 1)}`;
}

/** For each owner of the window, whether it belongs to the row of this name; without a name, all do. */
export function ofRow(window: Window, by: Grouping, name: string | null): boolean[] {
    return window.owners.map((owner) => name === null || (owner.kind !== "unknown" && rowName(owner, by) === name));
}

/** The places of the buffers in use after an event; -1 is before the first one. */
export function alive(window: Window, event: number): number[] {
    const found: number[] = [];
    for (let place = 0; place < window.owner.length; place++) {
        const to = window.to[place];
        if (window.from[place] <= event && (to > event || to === -1)) found.push(place);
    }
    return found;
}

export function standing(window: Window, event: number, by: Grouping): Standing {
    const found = new Map<string, { name: string; kinds: Map<string, number>; count: number }>();
    let unknown = window.unknown;
    for (const place of alive(window, event)) {
        const owner = window.owners[window.owner[place]];
        if (owner.kind === "unknown") {
            unknown += window.bytes[place];
            continue;
        }
        // Without a name of its own, what is of another kind is another row.
        const key = (by !== "kind" && owner[by]) || ` ${owner.kind}`;
        const row = found.get(key) ?? { name: rowName(owner, by), kinds: new Map<string, number>(), count: 0 };
        found.set(key, row);
        row.kinds.set(owner.kind, (row.kinds.get(owner.kind) ?? 0) + window.bytes[place]);
        row.count += 1;
    }
    const rows = Array.from(found.values(), ({ name, kinds, count }): Row => {
        const largest = Math.max(...kinds.values());
        const kind = KINDS.find((each) => kinds.get(each) === largest)!;
        return { name, kind, bytes: sum(kinds.values()), count };
    });
    rows.sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1));
    const leftOut = event === window.peakAt ? window.leftOut : 0;
    return { rows, unknown, leftOut, total: sum(rows.map((row) => row.bytes)) + unknown + leftOut };
}

export function sum(numbers: Iterable<number>): number {
    let total = 0;
    for (const number of numbers) total += number;
    return total;
}

/** The bytes in use before the first event and after each event, of the owners that are `chosen`, by default of all. */
export function inUse(window: Window, chosen?: boolean[]): Float64Array {
    const found = new Float64Array(window.times_us.length + 1);
    found[0] = chosen ? 0 : window.unknown;
    for (let place = 0; place < window.owner.length; place++) {
        if (chosen && !chosen[window.owner[place]]) continue;
        found[window.from[place] + 1] += window.bytes[place];
        if (window.to[place] !== -1) found[window.to[place] + 1] -= window.bytes[place];
    }
    for (let event = 1; event < found.length; event++) found[event] += found[event - 1];
    return found;
}

/** The event whose memory is shown: that of the chosen moment, or the peak's if nothing was recorded then. */
export function shownEvent(window: Window, at: number): { event: number; recorded: boolean } {
    const recorded = window.began <= at && at <= window.ended;
    return { event: recorded ? eventAt(window, at) : window.peakAt, recorded };
}

export const HEADS = ["name", "kind", "bytes", "share", "count"] as const;
export type Head = (typeof HEADS)[number];

/** The rows that have the text in their name or kind, in the order of a heading. */
export function arranged(rows: Row[], filter: string, by: Head, rising: boolean): Row[] {
    const wanted = filter.trim().toLowerCase();
    const found = rows.filter((row) => `${row.name} ${row.kind}`.toLowerCase().includes(wanted));
    const key = (row: Row) => (by === "share" ? row.bytes : row[by]);
    const sign = rising ? 1 : -1;
    return found.sort((a, b) => (key(a) < key(b) ? -sign : key(a) > key(b) ? sign : b.bytes - a.bytes));
}

/** A cell. `by` and `name` are those of a row of the table; there is none for a frame of a call stack. */
export interface Cell {
    name: string;
    by: Grouping | null;
    kind: string; // that of most of its bytes
    bytes: number;
    count: number;
    children: Map<string, Cell>;
}

/** A step down in the tree: what the names are of there, and the name. */
type Level = readonly [by: Grouping | null, name: string];

const LEVELS: Grouping[] = ["kind", "layer", "op", "line"];

/** The key of a cell beside its neighbours. The kind is part of it, so that every cell has one colour. */
export const keyOf = ({ name, kind }: { name: string; kind: string }) => `${kind} ${name}`;

const cell = (name: string, by: Grouping | null, kind: string): Cell => {
    return { name, by, kind, bytes: 0, count: 0, children: new Map() };
};

/** What is in use after an event, by kind, layer, operation and line, or by call stack. */
export function tree(window: Window, event: number, byStack: boolean): Cell {
    const root = cell("in use", null, "");
    const paths = window.owners.map((owner): Level[] => {
        if (byStack && owner.stack.length) return owner.stack.map((frame) => [null, frame]);
        const levels = LEVELS.map((by) => [by, rowName(owner, by)] as const);
        // A level that has no name of its own, or that of the level above, would say nothing.
        return levels.filter(([by, name], level) => level === 0 || (owner[by] && name !== levels[level - 1][1]));
    });
    const put = (kind: string, path: Level[], size: number, count: number) => {
        const cells = [root];
        for (const [by, name] of path) {
            const { children } = cells.at(-1)!;
            const key = keyOf({ name, kind });
            if (!children.has(key)) children.set(key, cell(name, by, kind));
            cells.push(children.get(key)!);
        }
        for (const each of cells) [each.bytes, each.count] = [each.bytes + size, each.count + count];
    };
    // What belongs to no buffer of the page.
    const leftOut = event === window.peakAt ? window.leftOut : 0;
    if (window.unknown) put("unknown", [[null, "unknown"]], window.unknown, 0);
    if (leftOut) put("unknown", [[null, "smaller buffers"]], leftOut, 0);
    for (const place of alive(window, event)) {
        const owner = window.owner[place];
        put(window.owners[owner].kind, paths[owner], window.bytes[place], 1);
    }
    return root;
}
