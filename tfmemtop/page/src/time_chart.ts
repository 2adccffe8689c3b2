/** A chart of bytes over seconds, by uPlot: axes in binary units, zoom by wheel and drag, a click chooses a moment. */
import uPlot from "uplot";
import { colour } from "./colours";
import { button, bytes } from "./elements";

export interface Line {
    key: string; // of its colour
    filled?: boolean; // down to the line before it in the list
    hidden?: boolean; // it only has a say in what the axis of bytes shows
}

export interface Chart {
    lines: Line[];
    data: uPlot.AlignedData;
    label(seconds: number, step: number): string; // at the axis of time, where `step` seconds lie between two labels
    range?: uPlot.Scale; // the seconds in sight at first; else all
    logarithmic?: boolean;
    headRoom?: number; // CSS pixels at the top that the data leave free
    footRoom?(): number; // CSS pixels below the axis
    reach?: number[]; // sizes that are to be in sight where they are not far above the data
    drags?: boolean; // to drag is to choose moments, not to zoom
    draw(u: uPlot): void; // over the lines
    onHover(seconds: number | null, bytes: number): void;
    onClick(seconds: number): void;
}

const FINE = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1].flatMap((power) => [power, 2 * power, 5 * power]);
const SECONDS = [...FINE, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
const SIZES = Array.from({ length: 50 }, (_none, power) => 2 ** power);
const AXIS = 50; // pixels
const CLOSEST = 1e-5; // of the whole time

/** The height of a chart in pixels, with room below its axis. */
export const heightWith = (footRoom: number) => (innerWidth < 600 ? 260 : 380) + footRoom;

export function chart(place: HTMLElement, { lines, data, label, reach = [], headRoom = 0, ...rest }: Chart): uPlot {
    const { logarithmic = false, drags = false, footRoom = () => 0 } = rest;
    const size = () => ({ width: Math.max(200, place.clientWidth), height: heightWith(footRoom()) });
    const axis = {
        stroke: () => colour("quiet"),
        grid: { stroke: () => colour("line"), width: 1 },
        ticks: { show: false },
    };
    const free = (headRoom + 22) / (heightWith(0) - AXIS);
    const options: uPlot.Options = {
        ...size(),
        legend: { show: false },
        padding: [6, 26, 0, 0],
        cursor: { y: false, points: { show: false }, drag: { x: !drags, y: false, dist: 6 } },
        scales: {
            x: { time: false },
            y: {
                distr: logarithmic ? 3 : 1,
                log: 2,
                range: (_u, low, high) => sizes(low, high, reach, logarithmic, free),
            },
        },
        axes: [
            {
                ...axis,
                incrs: SECONDS,
                space: 72,
                size: () => AXIS + footRoom(),
                values: (_u, splits, _axis, _space, step) => splits.map((at) => label(at, step)),
            },
            {
                ...axis,
                incrs: SIZES,
                size: 74,
                values: (_u, splits) => splits.map((size) => (size ? bytes(size) : size === 0 ? "0" : "")),
            },
        ],
        series: [{}, ...lines.map(({ key, filled, hidden }, place) => ({
            stroke: () => colour(key),
            width: filled ? 0 : 2,
            fill: filled && place === 0 ? () => colour(key) : undefined,
            paths: hidden ? () => null : uPlot.paths.stepped!({ align: 1 }),
            points: { show: false },
        }))],
        bands: lines.flatMap(({ key, filled }, place) =>
            filled && place ? [{ series: [place + 1, place] as [number, number], fill: () => colour(key) }] : [],
        ),
        hooks: {
            draw: [rest.draw],
            setCursor: [({ cursor: { left, top }, posToVal }) => {
                rest.onHover(left! < 0 ? null : posToVal(left!, "x"), posToVal(top!, "y"));
            }],
            destroy: [() => observer.disconnect()],
        },
    };
    const made = new uPlot(options, data, place);
    const observer = new ResizeObserver(() => made.setSize(size()));
    observer.observe(place);
    const { min, max } = rest.range ?? {};
    if (min != null && max != null) made.setScale("x", { min, max });
    const choose = ({ offsetX }: MouseEvent) => rest.onClick(made.posToVal(offsetX, "x"));
    if (drags) {
        made.over.addEventListener("pointerdown", ({ pointerId }) => made.over.setPointerCapture(pointerId));
        for (const event of ["pointerdown", "pointermove"] as const) {
            made.over.addEventListener(event, (pointer) => pointer.buttons & 1 && choose(pointer));
        }
    } else made.over.addEventListener("click", choose);
    made.over.addEventListener("wheel", (event) => wheel(made, event), { passive: false });
    return made;
}

/** The lowest and the highest size in sight. A limit or a card's total far above the data would flatten it. */
function sizes(low: number, high: number, reach: number[], logarithmic: boolean, free: number): uPlot.Range.MinMax {
    const most = Math.max(high ?? 0, 1024);
    const top = Math.max(most, ...reach.filter((size) => logarithmic || size <= 3 * most));
    if (!logarithmic) return [0, top / (1 - free)];
    const least = 2 ** Math.floor(Math.log2(Math.max(low > 0 ? low : 0, top / 2 ** 12)));
    return [least, least * (top / least) ** (1 / (1 - free))];
}

/** All seconds of a chart. */
const whole = ({ data: [times] }: uPlot) => ({ min: times[0], max: times.at(-1)! });

function wheel(u: uPlot, event: WheelEvent): void {
    const [{ min, max }, shown] = [whole(u), u.scales.x];
    if (shown.min! <= min && shown.max! >= max && event.deltaY > 0) return; // all is in sight: the page scrolls
    event.preventDefault();
    zoom(u, event.deltaY < 0 ? 0.75 : 1 / 0.75, u.posToVal(u.cursor.left!, "x"));
}

/** Show as many seconds as now, with *at* in the middle, where it is out of sight. */
export function reveal(u: uPlot, at: number): void {
    const { min, max } = u.scales.x;
    const half = (max! - min!) / 2;
    if (at < min! || at > max!) u.setScale("x", { min: at - half, max: at + half });
}

/** Show *factor* times as many seconds as now; *around* stays where it is. */
export function zoom(u: uPlot, factor: number, around: number): void {
    const [{ min, max }, shown] = [whole(u), u.scales.x];
    const low = Math.max(min, around - (around - shown.min!) * factor);
    const high = Math.min(max, around + (shown.max! - around) * factor);
    if (high - low > CLOSEST * (max - min)) u.setScale("x", { min: low, max: high });
}

/** The keys that zoom, with their actions; `at` is the moment that stays where it is. */
export function zoomKeys(graph: () => uPlot | undefined, at: () => number): Record<string, [string, () => void]> {
    const by = (factor: number) => () => graph() && zoom(graph()!, factor, at());
    const all = () => graph()?.setScale("x", whole(graph()!));
    return {
        "+": ["Zoom in on the moment", by(0.5)],
        "-": ["Zoom out", by(2)],
        "0": ["Show the whole time", all],
    };
}

/** A button for each of the keys that zoom. */
export function zoomButtons(keys: ReturnType<typeof zoomKeys>): HTMLElement[] {
    const hints = [["+", "+", "or the wheel"], ["-", "−", "or the wheel"], ["0", "all", "or a double click"]];
    return hints.map(([key, label, hint]) => {
        return button(label, `${keys[key][0]} (${key}, ${hint})`, keys[key][1]);
    });
}
