/**
 * What is chosen on the page. There is one such state: a moment that is chosen in one view is chosen in all.
 *
 * A view draws from it, subscribes to its changes, and changes it by `choose`. Data flows one way.
 */
import type { Page, Place, Pool, Run, Session, Window } from "./data";

export interface Choice {
    session: number; // a place in `page.sessions`
    run: number; // a place in the session's `runs`
    place: number; // a place in the session's `places`: the GPU or the CPU's pool whose memory is drawn over time
    pool: number; // a place in the run's `pools`
    window: number; // a place in the pool's `windows`
    at: number; // seconds since the session began; a fraction is an event of the window
    grouping: Grouping;
    selection: string | null; // the name of a row of that grouping, as `holders --by` has it
}

export const GROUPINGS = ["layer", "op", "kind", "shape", "line"] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** A change of these is one of the run, or of the window. */
export const OF_RUN = ["session", "run"] as const;
export const OF_WINDOW = [...OF_RUN, "pool", "window"] as const;

type Listener = (choice: Readonly<Choice>, changed: ReadonlySet<keyof Choice>) => void;

export class Moment {
    private listeners: Listener[] = [];
    private chosen: Choice;

    constructor(private readonly page: Page) {
        this.chosen = { session: 0, run: 0, place: 0, pool: 0, window: 0, at: 0, grouping: "layer", selection: null };
        this.chosen = this.completed({ session: gravest(page.sessions) });
    }

    get choice(): Readonly<Choice> {
        return this.chosen;
    }

    get session(): Session {
        return this.page.sessions[this.chosen.session];
    }

    /** `undefined` where the session has no run, as that of a screen that only watched. */
    get run(): Run | undefined {
        return this.session.runs[this.chosen.run];
    }

    get place(): Place | undefined {
        return this.session.places[this.chosen.place];
    }

    get pool(): Pool | undefined {
        return this.run?.pools[this.chosen.pool];
    }

    get window(): Window | undefined {
        return this.pool?.windows[this.chosen.window];
    }

    /** The highest peak of the chosen run: of its chosen pool, else of its place. */
    get peakAt(): number {
        return peakOf(this.run, this.pool, this.place, this.end) ?? this.end;
    }

    /** The end of the chosen run. */
    get end(): number {
        return endOf(this.session, this.chosen.run);
    }

    /** Change what is chosen. What depends on it follows: another run has its own pool, window and moment. */
    choose(change: Partial<Choice>): void {
        const before = this.chosen;
        this.chosen = this.completed(change);
        const keys = Object.keys(before) as (keyof Choice)[];
        const changed = new Set(keys.filter((key) => before[key] !== this.chosen[key]));
        if (changed.size) for (const listener of this.listeners) listener(this.chosen, changed);
    }

    /** Call *listener* after each change of one of *keys*, and once at once: then all has changed. */
    on(keys: readonly (keyof Choice)[], listener: Listener): void {
        this.listeners.push((choice, changed) => {
            if (keys.some((key) => changed.has(key))) listener(choice, changed);
        });
        listener(this.chosen, new Set(Object.keys(this.chosen) as (keyof Choice)[]));
    }

    private completed(change: Partial<Choice>): Choice {
        const session = this.page.sessions[change.session ?? this.chosen.session];
        const next = { ...this.chosen, ...change };
        if (change.session !== undefined) next.run = change.run ?? Math.max(0, session.runs.length - 1);
        else if (change.at !== undefined && change.run === undefined) next.run = runAt(session, change.at);
        const run = session.runs[next.run] as Run | undefined;
        const otherRun = change.session !== undefined || next.run !== this.chosen.run;
        if (change.pool === undefined && (otherRun || change.place !== undefined)) {
            const key = change.session === undefined ? session.places[next.place]?.key : null;
            next.pool = Math.max(0, run?.pools.findIndex((each) => each.place === key) ?? 0);
        }
        const pool = run?.pools[next.pool] as Pool | undefined;
        if (change.place === undefined && pool && (otherRun || change.pool !== undefined)) {
            next.place = Math.max(0, session.places.findIndex((each) => each.key === pool.place));
        }
        const otherPool = otherRun || next.pool !== this.chosen.pool;
        if (otherPool) next.selection = change.selection ?? null;
        const windows = pool?.windows ?? [];
        if (change.at === undefined && (otherRun || change.pool !== undefined)) {
            next.window = change.window ?? pool?.shown ?? 0;
            const end = endOf(session, next.run);
            next.at = peakOf(run, pool, session.places[next.place], end) ?? end;
        } else if (change.window === undefined && (otherPool || change.at !== undefined)) {
            next.window = nearest(windows, next.at, otherPool ? 0 : next.window);
        } else if (change.window !== undefined && change.at === undefined && windows[next.window]) {
            next.at = timeOf(windows[next.window], windows[next.window].peakAt);
        }
        if (change.grouping !== undefined && change.selection === undefined) next.selection = null;
        return next;
    }
}

function peakOf(run: Run | undefined, pool: Pool | undefined, place: Place | undefined, end: number): number | null {
    const window = pool?.windows[pool.shown];
    if (window) return timeOf(window, window.peakAt);
    const inUse = place?.layers.find((layer) => layer.key === "in_use");
    if (!run || !place || !inUse) return null;
    const size = (index: number) => inUse.bytes[index] ?? -1;
    const own = [...place.times.keys()].filter((index) => run.began <= place.times[index] && place.times[index] <= end);
    const best = own.reduce((highest, index) => (size(index) > size(highest) ? index : highest), -1);
    return place.times[best] ?? null;
}

/** The place of the window that was recorded at *at*, the newest of these; else of the one nearest to it. */
function nearest(windows: Window[], at: number, now: number): number {
    const away = (window: Window) => Math.max(window.began - at, at - window.ended, 0);
    return windows.reduce((best, window, place) => (away(window) <= away(windows[best]) ? place : best), now);
}

/** The place of the run that was the last to begin by *at*, 0 before the first. */
export function runAt(session: Session, at: number): number {
    return Math.max(0, session.runs.findLastIndex((run) => run.began <= at));
}

/** The place of the session whose last run has the most serious verdict. */
function gravest(sessions: Session[]): number {
    const weight = (session: Session) => ["warning", "fatal"].indexOf(session.runs.at(-1)?.verdict.severity ?? "");
    return sessions.reduce((best, session, place) => (weight(session) > weight(sessions[best]) ? place : best), 0);
}

/** When a run ended: at the latest when the next one began. */
export function endOf(session: Session, run: number): number {
    return session.runs[run]?.ended ?? session.runs[run + 1]?.began ?? session.ended;
}

/** What *make* makes of a window, made once. */
export function perWindow<Made>(make: (window: Window) => Made): (window: Window) => Made {
    const made = new WeakMap<Window, Made>();
    return (window) => {
        if (!made.has(window)) made.set(window, make(window));
        return made.get(window)!;
    };
}

/** The moments of a window's events, in seconds since the session began. */
export const momentsOf = perWindow((window) => {
    let sum = 0;
    return Float64Array.from(window.times_us, (difference) => window.began + (sum += difference) / 1e6);
});

/** The moment of event *event*, in seconds since the session began. */
export function timeOf(window: Window, event: number): number {
    return momentsOf(window)[event] ?? window.began;
}

/** The last event of *window* that is not after *at*, or the peak's if that is as late; -1 before the first. */
export function eventAt(window: Window, at: number): number {
    const times = momentsOf(window);
    const event = lastUpTo(times, at + 1e-7); // half a microsecond is lost where seconds are large
    return event >= 0 && times[event] === times[window.peakAt] ? window.peakAt : event;
}

/** The moment that is `by` events from *at*. Events of the same microsecond are one moment. */
export function stepped(window: Window, at: number, by: number): number {
    const times = momentsOf(window);
    const now = timeOf(window, eventAt(window, at));
    const from = by > 0 ? lastUpTo(times, now) : lastUpTo(times, now - 5e-7) + 1;
    return timeOf(window, Math.min(times.length - 1, Math.max(-1, from + by)));
}

/** The last place in the rising *times* that is not after *at*; -1 before the first. */
export function lastUpTo(times: ArrayLike<number>, at: number): number {
    let [low, high] = [0, times.length];
    while (low < high) {
        const middle = (low + high) >> 1;
        if (times[middle] <= at) low = middle + 1;
        else high = middle;
    }
    return low - 1;
}
