/** Where a pool's memory lies at a moment: regions, what is in use in them, and the gaps between. Pure. */
import type { Owner, Pool, PoolMap, Window } from "./data";
import { alive, bufferName, rowName, shownEvent, sum } from "./holders_at";
import type { Grouping } from "./moment";

/** A piece of a region: a buffer, a cell of a recorded map of which `share` is in use, or a gap of the kind "free". */
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
    pieces: Piece[]; // without a gap between them
}

export interface Shown {
    regions: MapRegion[];
    inUse: number;
    elsewhere: number; // of what is in use, in regions that are not known
    free: number;
    largestFree: number;
    at: number | null; // when the regions were read
    exact: boolean; // the pieces are buffers of the moment, not cells of a map
}

/** The buffers of `window` that are in use at a moment, in the pool's map nearest to it; else that map, if any. */
export function mapAt(pool: Pool, window: Window | undefined, at: number): Shown | null {
    const away = (map: PoolMap) => Math.abs(map.at - at);
    const nearest = [...pool.maps].sort((a, b) => away(a) - away(b))[0] ?? null;
    const { event, recorded } = window ? shownEvent(window, at) : { event: -1, recorded: false };
    const pieces = window && recorded ? buffers(window, event) : [];
    return pieces.length ? ofBuffers(pieces, nearest) : nearest && ofCells(nearest);
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

function ofBuffers(pieces: Piece[], map: PoolMap | null): Shown {
    const places = (map?.regions ?? []).map(({ address, size, since }): MapRegion => {
        return { address: map!.base + address, size, since, pieces: [] };
    });
    const strays: Piece[] = []; // in regions that the pool took after the map, or had given back before it
    for (const piece of pieces) {
        const home = places.find(({ address, size }) => address <= piece.address && piece.address < address + size);
        (home?.pieces ?? strays).push(piece);
    }
    const regions = [...places, ...around(strays)].sort((a, b) => a.address - b.address).map(filled);
    const [inUse, elsewhere] = [pieces, strays].map((some) => sum(some.map((piece) => piece.size)));
    const gaps = gapsOf(regions);
    const free = sum(gaps.map((gap) => gap.size));
    return { regions, inUse, elsewhere, free, largestFree: gaps[0]?.size ?? 0, at: map?.at ?? null, exact: true };
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
        return filled({ address: map.base + region.address, size: region.size, since: region.since, pieces });
    });
    const inUse = sum(map.regions.map((region) => region.inUse));
    return { regions, inUse, elsewhere: 0, free: map.free, largestFree: map.largestFree, at: map.at, exact: false };
}

/** Whether a piece belongs to the row of this name. Of a cell only its kind and layer are known. */
export function isOfRow({ owner, kind, name }: Piece, by: Grouping, row: string): boolean {
    if (owner) return rowName(owner, by) === row;
    return row === (by === "kind" ? kind : name);
}

/** A region with its gaps as pieces, each named by what lies on both sides. Its pieces have rising addresses. */
function filled(region: MapRegion): MapRegion {
    const pieces: Piece[] = [];
    let [address, below] = [region.address, "the region's start"];
    const add = (until: number, above: string) => {
        const name = `between ${below} and ${above}`;
        if (until > address) pieces.push({ address, size: until - address, share: 0, kind: "free", name, owner: null });
    };
    for (const piece of region.pieces) {
        add(piece.address, piece.name);
        pieces.push(piece);
        [address, below] = [Math.max(address, piece.address + piece.size), piece.name]; // lost events leave overlaps
    }
    add(region.address + region.size, "the region's end");
    return { ...region, pieces };
}

/** The gaps of a map, the largest first. */
export function gapsOf(regions: MapRegion[]): Piece[] {
    const gaps = regions.flatMap((region) => region.pieces.filter((piece) => piece.kind === "free"));
    return gaps.sort((a, b) => b.size - a.size);
}

/** The share of the free bytes that lies outside the largest free piece. */
export const fragmentation = ({ free, largestFree }: Shown) => (free > 0 ? Math.max(0, 1 - largestFree / free) : 0);

/** A row of the picture: a part of a region, from address `from` to `to`, and the pieces that lie there. */
export interface MapRow {
    region: MapRegion;
    pieces: Piece[];
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
            const to = Math.min(region.address + region.size, from + bytes);
            const pieces = region.pieces.filter(({ address, size }) => address < to && address + size > from);
            return { region, pieces, from, to };
        });
    });
    return { rows, bytes: Math.min(bytes, largest) };
}
