/** The columns that the graphs of memory over time draw. */
import type { Page, Place, Session } from "./data";
import { endOf, lastUpTo } from "./moment";

export type Column = (number | null)[];

/** The layers of a place, each upon those before it; `null` where nothing is known. The last ones last to the end. */
export function stacked(place: Place, ended: number): [number[], ...Column[]] {
    const times = [...place.times, Math.max(ended, place.times.at(-1) ?? 0)];
    const tops: Column[] = [];
    for (const { bytes } of place.layers) {
        const below = tops.at(-1);
        const top = place.times.map((_time, index) => {
            const under = below?.[index] ?? null;
            return bytes[index] === null ? under : bytes[index]! + (under ?? 0);
        });
        tops.push([...top, top.at(-1) ?? null]);
    }
    return [times, ...tops];
}

/** The sum of what is known; `null` where nothing is. */
export function sum(figures: (number | null | undefined)[]): number | null {
    const known = figures.filter((figure) => figure != null);
    return known.length ? known.reduce((one, other) => one + other, 0) : null;
}

/** One run of any session, in seconds since it began. */
export interface Course {
    name: string;
    times: number[];
    bytes: Column;
}

/**
 * The runs of all sessions, to be laid over each other: what is in use, or all that is used. Those of *chosen* are
 * drawn on *place*, those of another session, as of another rank of a job, where its fullest pool is.
 */
export function courses(page: Page, chosen: Session, place: Place, all: boolean): Course[] {
    return page.sessions.flatMap((session) => {
        const key = session === chosen ? place.key : (session.runs.at(-1)?.pools[0]?.place ?? place.key);
        const own = session.places.find((each) => each.key === key);
        if (!own) return [];
        return session.runs.map((run, index) => {
            const name = `run ${run.number}: ${run.settings}`;
            const figures = course(own, run.began, endOf(session, index), all);
            return { name: page.sessions.length > 1 ? `${session.name}, ${name}` : name, ...figures };
        });
    });
}

function course(place: Place, began: number, ended: number, all: boolean): { times: number[]; bytes: Column } {
    const first = Math.max(0, lastUpTo(place.times, began));
    const layers = all ? place.layers : place.layers.filter((layer) => layer.key === "in_use");
    const times = place.times.slice(first, lastUpTo(place.times, ended) + 1).map((time) => Math.max(0, time - began));
    const bytes = times.map((_time, index) => sum(layers.map((layer) => layer.bytes[first + index])));
    if (times.length && ended - began > times.at(-1)!) {
        times.push(ended - began);
        bytes.push(bytes.at(-1)!);
    }
    return { times, bytes };
}
