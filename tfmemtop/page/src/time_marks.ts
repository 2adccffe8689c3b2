/** What is drawn over memory over time: phases, starts of runs, limits, the card's total, failures and the moment. */
import type uPlot from "uplot";
import { colour } from "./colours";
import type { Place, Session } from "./data";
import { bytes } from "./elements";
import { endOf } from "./moment";

const STRIP = 18; // CSS pixels that a strip of names takes

/** How many CSS pixels at the top are for the names of runs and phases. */
export function headRoom(session: Session): number {
    return STRIP * (Number(session.runs.length > 1) + Number(session.runs.some((run) => run.phases.length)));
}

/** Draw the marks of *session* and *card* over the layers; *at* is the chosen moment, in run *chosen*. */
export function drawMarks(u: uPlot, session: Session, card: Place, at: number, chosen: number): void {
    const { ctx, bbox } = u;
    const { runs, ended } = session;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    if (card.total !== null) level(u, card.total, 0, ended, "quiet", [2, 3], `${card.name} has ${bytes(card.total)}`);
    for (const limit of card.limits) {
        const index = runs.findIndex((run) => run.number === limit.run);
        if (index >= 0)
            level(
                u,
                limit.bytes,
                runs[index].began,
                endOf(session, index),
                "limit",
                [7, 4],
                `limit ${bytes(limit.bytes)}`,
            );
    }
    const several = runs.length > 1;
    if (several) {
        runs.forEach((run, index) => {
            band(
                u,
                0,
                run.began,
                endOf(session, index),
                `run ${run.number}: ${run.settings || run.title}`,
                index === chosen,
            );
            upright(u, run.began, "quiet", "", []);
        });
    }
    runs.forEach((run, number) => {
        const phases = [...run.phases].sort((one, other) => one.began - other.began);
        const devices = run.pools.filter((pool) => pool.place === card.key).map((pool) => pool.device);
        phases.forEach(({ label, began, ended: until, peaks }, index) => {
            const peak = Math.max(...devices.map((device) => peaks[device] ?? 0));
            const name = peak > 0 ? `${label}, peak ${bytes(peak)}` : "";
            band(u, Number(several), began, until ?? endOf(session, number), label, index % 2 === 0, name);
        });
        for (const failure of run.failures) upright(u, failure, "fatal", "✖ out of memory", [], headRoom(session) + 20);
    });
    drawMoment(u, at);
    ctx.restore();
}

export function drawMoment(u: uPlot, at: number): void {
    upright(u, at, "text", "", [3, 3]);
}

/** A vertical line with a name at its right, or at its left where the right has no room. */
function upright(u: uPlot, at: number, key: string, name: string, dash: number[], below = 0): void {
    const { ctx, bbox } = u;
    const x = Math.round(u.valToPos(at, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    stroke(u, key, dash, x, bbox.top, x, bbox.top + bbox.height);
    const width = ctx.measureText(name).width + 6 * devicePixelRatio;
    ctx.textAlign = x + width > bbox.left + bbox.width ? "right" : "left";
    const aside = (ctx.textAlign === "left" ? 5 : -5) * devicePixelRatio;
    write(u, name, key, x + aside, bbox.top + (below + STRIP) * devicePixelRatio);
}

/** A horizontal line from *from* to *to* seconds, with a name at its left: a limit's below it, the card's above it. */
function level(u: uPlot, size: number, from: number, to: number, key: string, dash: number[], name: string): void {
    const { ctx, bbox } = u;
    const y = Math.round(u.valToPos(size, "y", true));
    if (y < bbox.top || y > bbox.top + bbox.height) return;
    const left = Math.max(bbox.left, u.valToPos(from, "x", true));
    const right = Math.min(bbox.left + bbox.width, u.valToPos(to, "x", true));
    if (right <= left) return;
    stroke(u, key, dash, left, y, right, y);
    ctx.textAlign = "left";
    const y0 = y + (key === "limit" ? 14 : -5) * devicePixelRatio;
    if (ctx.measureText(name).width < right - left) write(u, name, key, left + 4 * devicePixelRatio, y0);
}

/** A band in the strip *strip* at the top, with its name, or with a *longer* one where that has room. */
function band(u: uPlot, strip: number, began: number, ended: number, name: string, strong: boolean, longer = ""): void {
    const { ctx, bbox } = u;
    const height = STRIP * devicePixelRatio;
    const top = bbox.top + strip * height;
    const left = Math.max(bbox.left, u.valToPos(began, "x", true));
    const right = Math.min(bbox.left + bbox.width, u.valToPos(ended, "x", true));
    if (right < left) return;
    ctx.globalAlpha = strong ? 0.28 : 0.12;
    ctx.fillStyle = colour("quiet");
    ctx.fillRect(left, top, Math.max(devicePixelRatio, right - left - devicePixelRatio), height - devicePixelRatio);
    ctx.globalAlpha = 1;
    ctx.textAlign = "left";
    const room = right - left - 8 * devicePixelRatio;
    const text =
        longer && room > 80 * devicePixelRatio && ctx.measureText(longer).width < room
            ? longer
            : fitting(ctx, name, room);
    if (text) write(u, text, "text", left + 4 * devicePixelRatio, top + 0.74 * height, false);
}

/** Return *text*, shortened to *room* pixels; empty where three letters have no room. */
export function fitting(ctx: CanvasRenderingContext2D, text: string, room: number): string {
    if (room < 12 * devicePixelRatio) return "";
    if (ctx.measureText(text).width <= room) return text;
    let length = Math.floor((text.length * room) / ctx.measureText(text).width);
    while (length > 2 && ctx.measureText(`${text.slice(0, length)}…`).width > room) length -= 1;
    return length > 2 ? `${text.slice(0, length)}…` : "";
}

function stroke(u: uPlot, key: string, dash: number[], ...[x0, y0, x1, y1]: number[]): void {
    const { ctx } = u;
    ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
    ctx.lineWidth = (key === "text" || key === "limit" ? 1.5 : 1) * devicePixelRatio;
    ctx.strokeStyle = colour(key);
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.lineTo(x1, y1);
    ctx.stroke();
    ctx.setLineDash([]);
}

/** Write *text*; its ground is drawn around the letters, so that it is read upon any layer. */
function write(u: uPlot, text: string, key: string, x: number, y: number, outlined = true): void {
    const { ctx } = u;
    ctx.lineJoin = "round";
    ctx.lineWidth = 3.5 * devicePixelRatio;
    ctx.strokeStyle = colour("ground");
    if (outlined) ctx.strokeText(text, x, y);
    ctx.fillStyle = colour(key);
    ctx.fillText(text, x, y);
}
