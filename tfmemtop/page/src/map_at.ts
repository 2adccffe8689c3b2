/** Where a pool's memory lies at a moment: regions, what is in use in them, and the gaps between. Pure. */
import type { Owner, Pool, PoolMap, Window } from "./data";
import { alive, bufferName, rowName, sum } from "./holders_at";
import type { Grouping } from "./moment";

/** A piece of a region in use: a buffer, or a cell of a recorded map of which `share` is in use. */
export interface Piece {
    address: number; // addresses are whole ones here
    size: number;
    share: number; // 0 to 1
    kind: string;
    name: string;
    owner: Owner | null; // of a buffer
}

export interface MapRegion {
    address: number;
    size: number;
    since: number | null;
    pieces: Piece[]; // rising addresses
}

export interface Shown {
    regions: MapRegion[];
    inUse: number;
    free: number;
    largestFree: number;
    at: number; // when the regions were read
    exact: boolean; // the pieces are buffers of the moment, not cells of a map
}

/** What lies on both sides of a gap; a name is empty where the gap is at an end of the region. */
export interface Gap {
    address: number;
    size: number;
    below: string;
    above: string;
}

/** The map of the pool at a moment: `event` of `window`, or the recorded map nearest to `at`; `null` without either. */
export function mapAt(pool: Pool, window: Window | undefined, event: number | null, at: number): Shown | null {
    const nearest = pool.maps.reduce<PoolMap | null>(
        (best, map) => (best && Math.abs(best.at - at) < Math.abs(map.at - at) ? best : map),
        null,
    );
    if (window && event !== null) {
        const pieces = buffers(window, event);
        if (pieces.length) return ofBuffers(pieces, nearest, at);
    }
    return nearest && ofCells(nearest);
}

function buffers(window: Window, event: number): Piece[] {
    const places = alive(window, event).filter((place) => window.address[place] !== -1);
    const pieces = places.map((place): Piece => {
        const owner = window.owners[window.owner[place]];
        const address = window.base + window.address[place];
        return { address, size: window.bytes[place], share: 1, kind: owner.kind, name: bufferName(owner), owner };
    });
    return pieces.sort((a, b) => a.address - b.address);
}

function ofBuffers(pieces: Piece[], map: PoolMap | null, at: number): Shown {
    const regions = (map?.regions ?? []).map(({ address, size, since }): MapRegion => {
        return { address: map!.base + address, size, since, pieces: [] };
    });
    const strays: Piece[] = []; // in regions that the pool took after the map, or had given back before it
    for (const piece of pieces) {
        const home = regions.find(({ address, size }) => address <= piece.address && piece.address < address + size);
        (home?.pieces ?? strays).push(piece);
    }
    const every = [...regions, ...around(strays)].sort((a, b) => a.address - b.address);
    const gaps = every.flatMap(gapsOf).map((gap) => gap.size);
    const inUse = sum(pieces.map((piece) => piece.size));
    return { regions: every, inUse, free: sum(gaps), largestFree: Math.max(0, ...gaps), at: map?.at ?? at, exact: true };
}

/** Regions around buffers whose own are not known: another one begins where more lies between than they have in all. */
function around(pieces: Piece[]): MapRegion[] {
    const all = sum(pieces.map((piece) => piece.size));
    const found: MapRegion[] = [];
    for (const piece of pieces) {
        const last = found.at(-1);
        if (last && piece.address - last.address - last.size <= all) {
            last.size = piece.address + piece.size - last.address;
            last.pieces.push(piece);
        } else found.push({ address: piece.address, size: piece.size, since: null, pieces: [piece] });
    }
    return found;
}

function ofCells(map: PoolMap): Shown {
    const regions = map.regions.map((region): MapRegion => {
        const edge = (cell: number) => Math.floor((region.size * cell) / region.shares.length);
        const pieces: Piece[] = [];
        region.shares.forEach((inUse, cell) => {
            const [share, kind, name] = [inUse / 255, region.kinds[cell] || "unknown", region.names[cell] || "unknown"];
            const address = map.base + region.address + edge(cell);
            const size = edge(cell + 1) - edge(cell);
            const last = pieces.at(-1);
            const isMore = last && last.address + last.size === address && last.share === share;
            if (isMore && last.kind === kind && last.name === name) last.size += size;
            else if (share) pieces.push({ address, size, share, kind, name, owner: null });
        });
        return { address: map.base + region.address, size: region.size, since: region.since, pieces };
    });
    const inUse = sum(map.regions.map((region) => region.inUse));
    return { regions, inUse, free: map.free, largestFree: map.largestFree, at: map.at, exact: false };
}

/** Whether a piece belongs to the row of this name. Of a cell only its kind and layer are known. */
export function isOfRow({ owner, kind, name }: Piece, by: Grouping, row: string): boolean {
    if (owner) return rowName(owner, by) === row;
    return row === (by === "kind" ? kind : name);
}

/** The free parts of a region, in the order of their addresses. */
export function gapsOf(region: MapRegion): Gap[] {
    const found: Gap[] = [];
    let [end, below] = [region.address, ""];
    const add = (until: number, above: string) => {
        if (until > end) found.push({ address: end, size: until - end, below, above });
    };
    for (const piece of region.pieces) {
        add(piece.address, piece.name);
        [end, below] = [Math.max(end, piece.address + piece.size), piece.name];
    }
    add(region.address + region.size, "");
    return found;
}

/** The share of the free bytes that lies outside the largest free piece. */
export const fragmentation = ({ free, largestFree }: Shown) => (free > 0 ? Math.max(0, 1 - largestFree / free) : 0);

/** A row of the picture: a part of a region, from address `from` to `to`. */
export interface MapRow {
    region: MapRegion;
    from: number;
    to: number;
}

/** The regions in rows of a round number of bytes; a larger region has several. There are about `most` rows. */
export function rowsOf(regions: MapRegion[], most: number): { rows: MapRow[]; bytes: number } {
    const largest = Math.max(1, ...regions.map((region) => region.size));
    let bytes = 2 ** 16;
    while (bytes < largest && sum(regions.map((region) => Math.ceil(region.size / bytes))) > most) bytes *= 2;
    const rows = regions.flatMap((region) => {
        return Array.from({ length: Math.ceil(region.size / bytes) }, (_, row): MapRow => {
            const from = region.address + row * bytes;
            return { region, from, to: Math.min(region.address + region.size, from + bytes) };
        });
    });
    return { rows, bytes: Math.min(bytes, largest) };
}
