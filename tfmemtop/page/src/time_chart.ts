/** A chart of bytes over seconds, by uPlot: axes in binary units, zoom by wheel and drag, a click chooses a moment. */
import uPlot from "uplot";
import { colour } from "./colours";
import type { Session } from "./data";
import { bytes, clock } from "./elements";
import { endOf } from "./moment";

export interface Line {
    key: string; // of its colour
    filled: boolean; // down to the line before it in the list
}

export interface Chart {
    lines: Line[];
    data: uPlot.AlignedData;
    logarithmic: boolean;
    height: number;
    headRoom: number; // CSS pixels at the top that the data leave free
    reach: number[]; // sizes that are to be in sight where they are not far above the data
    draw(u: uPlot): void;
    onHover(seconds: number | null): void;
    onClick(seconds: number): void;
}

const SECONDS = [
    0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400,
];
const SIZES = Array.from({ length: 50 }, (_none, power) => 2 ** power);

export function chart(
    place: HTMLElement,
    { lines, data, logarithmic, height, headRoom, reach, ...hooks }: Chart,
): uPlot {
    const axis = {
        stroke: () => colour("quiet"),
        grid: { stroke: () => colour("line"), width: 1 },
        ticks: { show: false },
    };
    const options: uPlot.Options = {
        width: Math.max(200, place.clientWidth),
        height,
        legend: { show: false },
        padding: [6, 26, 0, 0],
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false, dist: 6 } },
        scales: {
            x: { time: false },
            y: {
                distr: logarithmic ? 3 : 1,
                log: 2,
                range: (_u, low, high) => sizes(low, high, reach, logarithmic, (headRoom + 22) / (height - 50)),
            },
        },
        axes: [
            {
                ...axis,
                incrs: SECONDS,
                space: 84,
                values: (_u, splits, _axis, _space, step) => splits.map((at) => moment(at, step)),
            },
            {
                ...axis,
                incrs: SIZES,
                size: 74,
                values: (_u, splits) => splits.map((size) => (size ? bytes(size) : size === 0 ? "0" : "")),
            },
        ],
        series: [{}, ...lines.map(series)],
        bands: lines.flatMap(({ key, filled }, place) =>
            filled && place ? [{ series: [place + 1, place] as [number, number], fill: () => colour(key) }] : [],
        ),
        hooks: {
            draw: [hooks.draw],
            setCursor: [(u) => hooks.onHover(u.cursor.left! < 0 ? null : u.posToVal(u.cursor.left!, "x"))],
        },
    };
    const made = new uPlot(options, data, place);
    made.over.addEventListener("click", () => hooks.onClick(made.posToVal(made.cursor.left!, "x")));
    made.over.addEventListener("wheel", (event) => wheel(made, event), { passive: false });
    return made;
}

function series({ key, filled }: Line, place: number): uPlot.Series {
    return {
        stroke: () => colour(key),
        width: filled ? 0 : 2,
        fill: filled && place === 0 ? () => colour(key) : undefined,
        paths: uPlot.paths.stepped!({ align: 1 }),
        points: { show: false },
    };
}

/** The lowest and the highest size in sight. A limit or a card's total far above the data would flatten it. */
function sizes(low: number, high: number, reach: number[], logarithmic: boolean, free: number): uPlot.Range.MinMax {
    const most = Math.max(high ?? 0, 1024);
    const top = Math.max(most, ...reach.filter((size) => logarithmic || size <= 3 * most));
    if (!logarithmic) return [0, top / (1 - free)];
    const least = 2 ** Math.floor(Math.log2(Math.max(low > 0 ? low : 0, top / 2 ** 12)));
    return [least, least * (top / least) ** (1 / (1 - free))];
}

function moment(at: number, step: number): string {
    return step >= 1 ? clock(at) : `${clock(at)}${(at % 1).toFixed(step >= 0.1 ? 1 : 3).slice(1)}`;
}

function wheel(u: uPlot, event: WheelEvent): void {
    if (!zoomed(u) && event.deltaY > 0) return; // all is in sight: the page scrolls
    event.preventDefault();
    zoom(u, event.deltaY < 0 ? 0.75 : 1 / 0.75, u.posToVal(u.cursor.left!, "x"));
}

/** Whether less than all is in sight. */
function zoomed(u: uPlot): boolean {
    const { min, max } = u.scales.x;
    return min! > u.data[0][0] || max! < u.data[0].at(-1)!;
}

/** Show as many seconds as now, with *at* in the middle, where it is out of sight. */
export function reveal(u: uPlot, at: number): void {
    const { min, max } = u.scales.x;
    const half = (max! - min!) / 2;
    if (at < min! || at > max!) u.setScale("x", { min: at - half, max: at + half });
}

/** Show *factor* times as many seconds as now; *around* stays where it is. */
export function zoom(u: uPlot, factor: number, around: number): void {
    const { min, max } = u.scales.x;
    const [first, last] = [u.data[0][0], u.data[0].at(-1)!];
    const low = Math.max(first, around - (around - min!) * factor);
    const high = Math.min(last, around + (max! - around) * factor);
    if (high - low > 1e-4) u.setScale("x", { min: low, max: high });
}

export function showAll(u: uPlot): void {
    u.setScale("x", { min: u.data[0][0], max: u.data[0].at(-1)! });
}

/** Show the runs, where they took less than two thirds of the time. */
export function showRuns(u: uPlot, session: Session): void {
    const first = session.runs[0]?.began ?? 0;
    const length = endOf(session, session.runs.length - 1) - first;
    if (length > 0 && length < session.ended / 1.5) {
        u.setScale("x", { min: Math.max(u.data[0][0], first - 0.03 * length), max: first + 1.03 * length });
    }
}
