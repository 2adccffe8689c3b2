/** What is drawn over memory over time: phases, starts of runs, limits, the card's total, failures and the moment. */
import type uPlot from "uplot";
import { colour } from "./colours";
import type { Place, Session } from "./data";
import { bytes } from "./elements";

const BAND = 17; // CSS pixels that the names of phases take

/** Draw the marks of *session* and *place* over the layers; *at* is the chosen moment. */
export function drawMarks(u: uPlot, session: Session, place: Place, at: number): void {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.lineWidth = devicePixelRatio;
    drawPhases(u, session);
    const end = session.ended;
    if (place.total !== null) level(u, place.total, 0, end, "quiet", [2, 3], `${place.name} has ${bytes(place.total)}`);
    for (const limit of place.limits) {
        const run = session.runs.find((each) => each.number === limit.run);
        if (run) level(u, limit.bytes, run.began, run.ended ?? end, "limit", [7, 4], `limit ${bytes(limit.bytes)}`);
    }
    session.runs.forEach((run) => {
        if (session.runs.length > 1) upright(u, run.began, "quiet", `run ${run.number}`, []);
        run.failures.forEach((failure) => upright(u, failure, "fatal", "✖ out of memory", []));
    });
    drawMoment(u, at);
    ctx.restore();
}

export function drawMoment(u: uPlot, at: number): void {
    upright(u, at, "text", "", [3, 3]);
}

/** A vertical line with a name at its right, or at its left where the right has no room. */
function upright(u: uPlot, at: number, key: string, name: string, dash: number[]): void {
    const { ctx, bbox } = u;
    const x = Math.round(u.valToPos(at, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    stroke(u, key, dash, x, bbox.top, x, bbox.top + bbox.height);
    const width = ctx.measureText(name).width + 6 * devicePixelRatio;
    ctx.textAlign = x + width > bbox.left + bbox.width ? "right" : "left";
    write(u, name, key, x + (ctx.textAlign === "left" ? 5 : -5) * devicePixelRatio, bbox.top + 2.3 * BAND * devicePixelRatio);
}

/** A horizontal line from *from* to *to* seconds, with a name above it. */
function level(u: uPlot, size: number, from: number, to: number, key: string, dash: number[], name: string): void {
    const { ctx, bbox } = u;
    const y = Math.round(u.valToPos(size, "y", true));
    if (y < bbox.top || y > bbox.top + bbox.height) return;
    const left = Math.max(bbox.left, u.valToPos(from, "x", true));
    const right = Math.min(bbox.left + bbox.width, u.valToPos(to, "x", true));
    if (right <= left) return;
    stroke(u, key, dash, left, y, right, y);
    ctx.textAlign = "right";
    if (ctx.measureText(name).width < right - left) write(u, name, key, right - 4 * devicePixelRatio, y - 5 * devicePixelRatio);
}

/** Bands at the top, with names where there is room. A phase in another lies below it. */
function drawPhases(u: uPlot, session: Session): void {
    const { ctx, bbox } = u;
    ctx.textAlign = "left";
    const height = BAND * devicePixelRatio;
    const phases = session.runs.flatMap((run) => run.phases.map((phase) => ({ ...phase, ended: phase.ended ?? run.ended })));
    phases.forEach(({ label, began, ended }, place) => {
        const left = Math.max(bbox.left, u.valToPos(began, "x", true));
        const right = Math.min(bbox.left + bbox.width, u.valToPos(ended ?? session.ended, "x", true));
        if (right < left) return;
        ctx.globalAlpha = place % 2 ? 0.14 : 0.24;
        ctx.fillStyle = colour("quiet");
        ctx.fillRect(left, bbox.top, Math.max(1, right - left), height);
        ctx.globalAlpha = 0.05;
        if (place % 2) ctx.fillRect(left, bbox.top, right - left, bbox.height);
        ctx.globalAlpha = 1;
        const room = right - left - 6 * devicePixelRatio;
        const name = fitting(ctx, label, room);
        if (name) write(u, name, "text", left + 4 * devicePixelRatio, bbox.top + 0.75 * height, false);
    });
}

/** *text*, shortened to *room* pixels; empty where even three letters have no room. */
export function fitting(ctx: CanvasRenderingContext2D, text: string, room: number): string {
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
