/** What is drawn over memory over time: phases, starts of runs, limits, the card's total, failures and the moment. */
import type uPlot from "uplot";
import { colour } from "./colours";
import type { Phase, Place, Session } from "./data";
import { bytes } from "./elements";
import { endOf } from "./moment";

const STRIP = 18; // pixels that a strip of names at the top takes

/** How many pixels at the top are for the names of runs and phases. */
export function headRoom({ runs }: Session): number {
    return STRIP * (Number(runs.length > 1) + Number(runs.some((run) => run.phases.length)));
}

/** What is marked on a place's layers: run *chosen* is emphasised. */
export interface Marks {
    session: Session;
    card: Place;
    chosen: number;
}

/** Draw the chosen moment *at*, upon the *marks*. */
export function drawMarks(u: uPlot, at: number, marks?: Marks): void {
    const pen = new Pen(u);
    if (marks) drawRuns(pen, marks);
    pen.upright(at, "text");
    u.ctx.restore();
}

function drawRuns(pen: Pen, { session, card, chosen }: Marks): void {
    const { runs, ended } = session;
    const several = runs.length > 1;
    if (card.total !== null) pen.level(card.total, [0, ended], "quiet", `${card.name} has ${bytes(card.total)}`);
    runs.forEach((run, index) => {
        const end = endOf(session, index);
        const limit = card.limits[run.number];
        if (limit !== undefined) pen.level(limit, [run.began, end], "limit", `limit ${bytes(limit)}`);
        const devices = run.pools.filter((pool) => pool.place === card.key).map((pool) => pool.device);
        run.phases.forEach((phase, place) => {
            const span: Span = [phase.began, phase.ended ?? end];
            pen.band(Number(several), span, names(phase, devices), place % 2 === 0);
        });
        if (several) {
            const name = `run ${run.number}`;
            pen.band(0, [run.began, end], [`${name}: ${run.settings}`, name, `${run.number}`], index === chosen);
            pen.upright(run.began, "quiet");
        }
        for (const failure of run.failures) pen.upright(failure, "fatal", "✖ out of memory");
    });
}

/** The names of a phase, the longest first: with its peak on *devices*, without it, and only its number. */
function names({ label, peaks }: Phase, devices: string[]): string[] {
    const peak = Math.max(0, ...devices.map((device) => peaks[device] ?? 0));
    const number = /\d*$/.exec(label)![0]; // of an epoch
    return [peak ? `${label}, peak ${bytes(peak)}` : label, label, number];
}

type Span = [from: number, to: number];

const DASHES: Record<string, number[]> = { text: [3, 3], quiet: [2, 3], limit: [7, 4], fatal: [] };

/** Draws in the plot: in pixels of the page from its upper left corner, in seconds and in bytes. */
class Pen {
    private readonly ctx: CanvasRenderingContext2D;
    private readonly width: number;
    private readonly height: number;

    constructor(private readonly u: uPlot) {
        const { ctx, bbox } = u;
        this.ctx = ctx;
        [this.width, this.height] = [bbox.width / devicePixelRatio, bbox.height / devicePixelRatio];
        ctx.save();
        ctx.translate(bbox.left, bbox.top);
        ctx.scale(devicePixelRatio, devicePixelRatio);
        ctx.beginPath();
        ctx.rect(0, 0, this.width, this.height);
        ctx.clip();
        ctx.font = "12px system-ui, sans-serif";
        ctx.textAlign = "left";
        ctx.textBaseline = "alphabetic";
    }

    /** A vertical line with a name at its foot, at its right, or at its left where the right has no room. */
    upright(at: number, key: string, name = ""): void {
        const x = this.u.valToPos(at, "x");
        if (x < 0 || x > this.width) return;
        this.stroke(key, [x, 0], [x, this.height]);
        const room = this.ctx.measureText(name).width + 5;
        this.write(name, key, x + room > this.width ? x - room : x + 5, this.height - 8);
    }

    /** A horizontal line with a name at its left: a limit's below it, the card's above it. */
    level(size: number, span: Span, key: string, name: string): void {
        const y = this.u.valToPos(size, "y");
        const [left, right] = this.sides(span);
        if (y < 0 || y > this.height || right <= left) return;
        this.stroke(key, [left, y], [right, y]);
        if (this.ctx.measureText(name).width < right - left)
            this.write(name, key, left + 4, y + (key === "limit" ? 14 : -5));
    }

    /** A band in strip *strip* at the top, with the first of *names* that has room. */
    band(strip: number, span: Span, names: string[], strong: boolean): void {
        const { ctx } = this;
        const [left, right] = this.sides(span);
        if (right < left) return;
        ctx.globalAlpha = strong ? 0.28 : 0.12;
        ctx.fillStyle = colour("quiet");
        ctx.fillRect(left, strip * STRIP, Math.max(1, right - left - 1), STRIP - 1);
        ctx.globalAlpha = 1;
        const name = names.find((each) => ctx.measureText(each).width <= right - left - 8) ?? "";
        this.write(name, "text", left + 4, (strip + 0.74) * STRIP, false);
    }

    private sides([from, to]: Span): [left: number, right: number] {
        return [Math.max(0, this.u.valToPos(from, "x")), Math.min(this.width, this.u.valToPos(to, "x"))];
    }

    private stroke(key: string, from: [number, number], to: [number, number]): void {
        const { ctx } = this;
        ctx.setLineDash(DASHES[key]);
        ctx.lineWidth = 1.5;
        ctx.strokeStyle = colour(key);
        ctx.beginPath();
        ctx.moveTo(...from);
        ctx.lineTo(...to);
        ctx.stroke();
    }

    /** Write *text*; its ground is drawn around the letters, so that it is read upon any layer. */
    private write(text: string, key: string, x: number, y: number, outlined = true): void {
        const { ctx } = this;
        ctx.setLineDash([]);
        ctx.lineJoin = "round";
        ctx.lineWidth = 3.5;
        ctx.strokeStyle = colour("ground");
        if (outlined) ctx.strokeText(text, x, y);
        ctx.fillStyle = colour(key);
        ctx.fillText(text, x, y);
    }
}
