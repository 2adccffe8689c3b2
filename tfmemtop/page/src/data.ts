/**
 * What a page shows, as `tfmemtop report` writes it: `tfmemtop/reports/shared/data.py` has the same classes.
 *
 * Sizes are bytes. Times are seconds since the session began, unless a name ends in `_us`: these are microseconds since
 * the window began. Lists whose names are in the plural and that stand beside each other are the columns of one table.
 */

export interface Page {
    tfmemtop: string; // the version
    sessions: Session[]; // several: recordings beside each other, or the ranks of a job
    comparison: Comparison | null; // with two sessions or more
}

export interface Session {
    name: string; // the recording's name
    placement: string; // "rank 1 of 2 on node-2"; empty for a session alone
    began: number; // seconds since the epoch
    ended: number; // the last event
    places: Place[]; // each GPU, and the CPU's pool
    runs: Run[]; // the oldest first; a page shows the last one
    notes: string[]; // what is missing: "12 damaged lines left out"
}

/** A GPU or the CPU's pool, and its memory over time. A column has `null` where the figure is not known. */
export interface Place {
    key: string; // "0", "cpu"
    name: string; // "GPU 0", "CPU pool"
    model: string; // "NVIDIA H200"; empty for the CPU
    total: number | null;
    times: number[]; // rising; each has the highest figures until the next one
    layers: Layer[]; // each lies upon the one before, in this order; their sum is all that is used
    limits: Record<number, number>; // the bytes of the limit, by the number of the run
}

export interface Layer {
    key: "in_use" | "cached" | "context" | "outside" | "others" | string; // another framework has its own name as key
    name: string;
    bytes: (number | null)[];
}

export interface Run {
    number: number;
    title: string; // the command line, short
    settings: string; // "growth on, limit 2.0 GiB"
    heading: string; // the run in one sentence
    began: number;
    ended: number | null;
    facts: [string, string][]; // "command": "python train.py", "TensorFlow": "2.21.0", …
    verdict: Verdict;
    findings: Finding[]; // the most serious first
    answers: Answer[]; // of the five questions
    settingRows: string[][]; // each: a setting, what was requested, what is in effect, and where it was set
    accounts: Account[];
    phases: Phase[];
    failures: number[]; // when memory ran out
    whatIf: WhatIf[];
    pools: Pool[]; // those with recorded allocations or a map, the fullest first
}

export interface Verdict {
    severity: Severity;
    text: string;
    evidence: string;
    remedies: string[];
    command: string; // to paste; empty if there is none
    code: string;
}

export type Severity = "info" | "warning" | "fatal" | "good";

export interface Finding {
    severity: Severity;
    text: string;
    began: number;
    ended: number | null; // null if it held until the end
}

export interface Answer {
    question: string;
    line: string;
    paragraphs: string[];
}

export interface Account {
    heading: string; // "Its memory on GPU 0 at 00:00:21: 1.1 GiB"
    total: number;
    parts: { name: string; bytes: number; exact: boolean; meaning: string }[]; // they add up to the total
    notes: string[];
}

export interface Phase {
    label: string; // "epoch 3"
    began: number;
    ended: number | null;
    peaks: Record<string, number>; // by logical device
}

/** What `tfmemtop whatif` prints of a pool. */
export interface WhatIf {
    device: string;
    about: string[]; // sentences: what the table rests on
    columns: string[]; // "growth", "limit", "fits", "peak", …; the last one, "", has remarks
    rows: string[][]; // the present setting first
    sentences: string[]; // the smallest limits
}

/** The pool of a logical device of a process. */
export interface Pool {
    pid: number;
    device: string; // "GPU:0"
    place: string; // the key of its place
    owners: Owner[]; // of the buffers in all its windows
    windows: Window[]; // in the order of their beginnings; that of the highest peak is `shown`
    shown: number; // -1 if there are no windows, only maps
    maps: PoolMap[]; // the newest last; a map is of one moment
}

/** Recorded allocations. An event is an allocation or a release, counted from 0. */
export interface Window {
    title: string; // "one step of train_function", "what was recorded since the run's start"
    about: string; // the sentence above the table of holders
    began: number;
    ended: number;
    peak: number;
    peakAt: number; // the event that reached the peak
    unknown: number; // bytes of the peak that belong to no buffer: in the row "unknown", as buffers of that kind are
    leftOut: number; // bytes of the peak that belong to small buffers, which the page does not have
    times_us: number[]; // of each event, as differences from the one before
    owners: Owner[]; // those of its pool, put here when the page is read
    // The buffers, in the order of their beginnings. The known parts of an XLA buffer stand here as buffers.
    owner: number[]; // a place in `owners`
    bytes: number[];
    address: number[]; // less `base`; -1 for a sum of small allocations whose addresses are not recorded
    base: number;
    from: number[]; // the event; -1 if it is older than the window
    to: number[]; // the event of its release; -1 if it is not released in the window
}

/**
 * What buffers that are alike have in common. `layer`, `op`, `shape` and `line` are the names of rows of
 * `holders --by`; each is empty where it is not known: then the row has the name of the kind.
 */
export interface Owner {
    kind: string; // "activations", as in `holders --json`
    layer: string;
    op: string;
    shape: string;
    line: string; // "train.py:12"
    code: string; // that line's text
    stack: string[]; // the call stack, the outermost first; empty if only the line is known
}

/** Where the pool's memory lay at one moment. Its chunks are not recorded, only cells: equal parts of a region. */
export interface PoolMap {
    at: number;
    base: number; // the address of the first region
    regions: Region[];
    free: number;
    largestFree: number;
}

export interface Region {
    address: number; // less `base`
    size: number;
    since: number | null; // when the pool took it
    inUse: number;
    // The cells, from the lowest address on.
    shares: number[]; // how much of it is in use, 0 to 255
    kinds: string[]; // that of most of it; empty if nothing is in use, or "unknown"
    names: string[]; // of its largest owner, as in the table by layer
}

export interface Comparison {
    title: string; // "run 1 of a.jsonl beside run 1 of b.jsonl", "4 ranks"
    rows: { name: string; values: string[]; different: boolean }[]; // one value for each session; differences first
    differences: { name: string; values: (number | null)[] }[]; // allocations by identity, the largest first
    text: string[]; // sentences
}
