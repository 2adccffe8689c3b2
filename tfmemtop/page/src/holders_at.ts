/** Who holds a pool's memory after an event of a window. Pure. The rows are those of `tfmemtop holders --json`. */

import type { Owner, Window } from "./data";
import { eventAt, type Grouping } from "./moment";

/** The kinds in the order of a stack: those that stay are below. */
export const KINDS = [
    "variables",
    "optimizer",
    "before",
    "tensors",
    "input",
    "activations",
    "gradients",
    "loss",
    "workspace",
    "xla",
    "rounding",
    "unknown",
];

const OF_KINDS: Record<string, string> = {
    before: "no name",
    tensors: "tensors that Python holds",
    xla: "XLA's buffers",
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
    const kindsOfRows = new Map<string, Map<string, number>>();
    const counts = new Map<string, number>();
    let unknown = window.unknown;
    for (const place of alive(window, event)) {
        const owner = window.owners[window.owner[place]];
        if (owner.kind === "unknown") {
            unknown += window.bytes[place];
            continue;
        }
        const name = rowName(owner, by);
        const kinds = kindsOfRows.get(name) ?? new Map<string, number>();
        kindsOfRows.set(name, kinds.set(owner.kind, (kinds.get(owner.kind) ?? 0) + window.bytes[place]));
        counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    const rows = Array.from(kindsOfRows, ([name, kinds]): Row => {
        const [kind] = [...kinds].reduce((most, one) => (one[1] > most[1] ? one : most));
        return { name, kind, bytes: sum(kinds.values()), count: counts.get(name)! };
    });
    rows.sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1));
    const leftOut = event === window.peakAt ? window.leftOut.atPeak : 0;
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
