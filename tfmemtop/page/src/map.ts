/** The map of the pool at the chosen moment: regions as rows to scale, what is in use coloured by kind, and gaps. */
import { colour, legend, onTheme } from "./colours";
import type { Page } from "./data";
import { bytes, clock, element, share, table } from "./elements";
import { KINDS } from "./holders_at";
import { fragmentation, gapsOf, isOfRow, mapAt, rowsOf } from "./map_at";
import type { MapRegion, MapRow, Piece, Shown } from "./map_at";
import { lastUpTo, OF_WINDOW, type Moment } from "./moment";

const ROWS = 24;
const [ROW, APART] = [15, 5]; // pixels: the height of a row, and between regions
const LISTED = 20; // gaps in the table

function told({ address, size, share: inUse, kind, name }: Piece, regions: MapRegion[]): string {
    const number = regions.findLastIndex((region) => region.address <= address);
    const { since } = regions[number];
    const part = inUse > 0 && inUse < 1 ? `${Math.round(100 * inUse)} % of ${bytes(size)} in use` : bytes(size);
    const region = `region ${number + 1} of ${regions.length}, ${bytes(regions[number].size)}`;
    const taken = since === null ? "" : `, taken at ${clock(since)}`;
    return `${name} · ${kind} · ${part} · at 0x${address.toString(16)} · ${region}${taken}`;
}

export function mount(place: HTMLElement, _: Page, moment: Moment): void {
    const words = element("p", "about");
    const canvas = element("canvas", "map");
    const readout = element("p", "readout");
    const kinds = element("p", "legend");
    const list = element("details");
    const none = element("p", "note", "No map of a pool was recorded in this run.");
    const parts = element("div", "", words, canvas, readout, kinds, list);
    place.append(none, parts);
    let shown: Shown | null = null;
    let rows: MapRow[] = [];
    let tops: number[] = []; // where each row begins, in pixels
    let bytesOfRow = 1;
    let under: Piece | null = null;
    canvas.tabIndex = 0;
    canvas.role = "img";

    function update(): void {
        const { pool, window, choice } = moment;
        shown = pool ? mapAt(pool, window, choice.at) : null;
        none.hidden = shown !== null;
        parts.hidden = shown === null;
        if (!shown) return;
        under = null;
        ({ rows, bytes: bytesOfRow } = rowsOf(shown.regions, ROWS));
        const tall = rows.length > 2 * ROWS ? 4 : ROW;
        const apart = (row: MapRow) => APART * shown!.regions.indexOf(row.region);
        tops = rows.map((row, number) => number * tall + apart(row));
        canvas.style.height = `${tops[rows.length - 1] + tall}px`;
        const { regions, inUse, elsewhere, free, largestFree } = shown;
        const figures = elsewhere
            ? `${bytes(inUse)} in use. ${bytes(elsewhere)} of it lie outside the regions that were recorded. ` +
              "What looks free there may not belong to the pool."
            : `${bytes(inUse)} in use in ${regions.length} ${regions.length === 1 ? "region" : "regions"}, ` +
              `${bytes(free)} free, largest free ${bytes(largestFree)}, ` +
              `fragmentation ${Math.round(100 * fragmentation(shown))} %.`;
        const read = shown.at === null ? "" : `map read at ${clock(shown.at)}`;
        const source = !shown.exact
            ? `The ${read}: no allocations were recorded at the chosen moment.`
            : `The buffers of the chosen moment${read && `, in the regions of the ${read}`}.`;
        words.textContent = `${figures} ${source}`;
        canvas.ariaLabel = words.textContent;
        readout.textContent = `A row is ${bytes(bytesOfRow)}. Point at the map, or go through it with ← and →.`;
        const pieces = regions.flatMap((region) => region.pieces);
        const found = KINDS.filter((kind) => pieces.some((piece) => piece.kind === kind));
        kinds.replaceChildren(...legend([...found, "free"]));
        const gaps = gapsOf(regions);
        const cells = gaps.slice(0, LISTED).map((gap) => [bytes(gap.size), share(gap.size, free), gap.name]);
        list.hidden = !gaps.length;
        list.replaceChildren(
            element("summary", "", `The largest ${Math.min(LISTED, gaps.length)} of ${gaps.length} gaps as a table`),
            table(["gap", "share of free", "where"], cells, [0, 1]),
        );
        draw();
    }

    function draw(): void {
        if (!shown) return;
        const [width, height] = [canvas.clientWidth, canvas.clientHeight];
        [canvas.width, canvas.height] = [width, height].map((pixels) => Math.round(pixels * devicePixelRatio));
        const pen = canvas.getContext("2d")!;
        pen.scale(devicePixelRatio, devicePixelRatio);
        const { grouping, selection } = moment.choice;
        const isChosen = (piece: Piece) => selection === null || isOfRow(piece, grouping, selection);
        rows.forEach((row, number) => {
            const x = (address: number) => ((address - row.from) / bytesOfRow) * width;
            const tall = Math.min(ROW, (tops[number + 1] ?? height) - tops[number]) - 1;
            const fill = (one: Piece) => {
                const [from, to] = [Math.max(row.from, one.address), Math.min(row.to, one.address + one.size)];
                pen.fillRect(x(from), tops[number], x(to) - x(from), tall);
            };
            pen.globalAlpha = 1;
            pen.fillStyle = colour("free");
            pen.fillRect(0, tops[number], Math.max(1, x(row.to)), tall);
            for (const piece of row.pieces) {
                pen.fillStyle = colour(piece.kind);
                pen.globalAlpha = piece.share * (isChosen(piece) ? 1 : 0.25);
                fill(piece);
            }
            if (!under || !row.pieces.includes(under)) return;
            pen.globalAlpha = under.share ? 0.75 : 0.3;
            pen.fillStyle = colour("text");
            fill(under);
        });
    }

    function point(one: Piece | null): void {
        if (one === under) return;
        under = one;
        if (one && shown) readout.textContent = told(one, shown.regions);
        draw();
    }

    canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => {
        const row = rows[lastUpTo(tops, offsetY)];
        const at = row && row.from + (offsetX / canvas.clientWidth) * bytesOfRow;
        point(row?.pieces.find(({ address, size }) => address <= at && at < address + size) ?? null);
    });
    canvas.addEventListener("pointerleave", () => point(null));
    canvas.addEventListener("keydown", (key) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[key.key];
        if (!step || !shown) return;
        const all = shown.regions.flatMap((region) => region.pieces);
        const now = all.findIndex((one) => one.address === under?.address);
        point(all[Math.min(all.length - 1, Math.max(0, now + step))] ?? null);
        key.preventDefault();
    });
    moment.on([...OF_WINDOW, "at"], update);
    moment.on(["selection", "grouping"], draw);
    addEventListener("resize", draw);
    onTheme(draw);
}
