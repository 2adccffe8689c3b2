/** Who holds the memory, as an icicle: each cell is as wide as its bytes, and what it consists of is below it. */
import { variable } from "./colours";
import { button, bytes, element, share } from "./elements";
import { keyOf, KINDS, sum, type Cell } from "./holders_at";

const ROW = 26; // pixels
const LEAST = 2; // pixels: a narrower cell is not drawn
const DEEPEST = 16; // rows

/** An icicle in `place`. A click on a cell makes it as wide as the whole, and `chosen` gets it. */
export class Flame {
    private root: Cell | null = null;
    private width = 0; // pixels, when it was drawn
    private zoomed: string[] = []; // the keys of the cells below the root, down to the one that is as wide as the whole

    constructor(
        private readonly place: HTMLElement,
        private readonly readout: HTMLElement,
        private readonly chosen: (cell: Cell) => void,
    ) {}

    show(root: Cell, keepZoom: boolean): void {
        this.root = root;
        if (!keepZoom) this.zoomed = [];
        this.draw();
    }

    private draw(): void {
        if (!this.root) return;
        this.width = this.place.clientWidth;
        const path = [this.root];
        for (const key of this.zoomed) {
            const next = path.at(-1)!.children.get(key);
            if (!next) break; // nothing of it is in use at this moment
            path.push(next);
        }
        const hadFocus = this.place.contains(document.activeElement);
        const last = path.length - 1;
        const cells = path.map((_, depth) => this.drawn(path.slice(0, depth + 1), 0, this.width, depth === last));
        this.place.replaceChildren(...cells, ...this.below(path, 0, this.width / path.at(-1)!.bytes));
        const tops = Array.from(this.place.children, (each) => parseFloat((each as HTMLElement).style.top));
        this.place.style.height = `${Math.max(...tops) + ROW}px`;
        if (hadFocus) this.place.querySelector<HTMLElement>(".top")!.focus({ preventScroll: true });
    }

    /** What the last cell of a path consists of, from the pixel `left` on, at so many pixels a byte. */
    private below(path: Cell[], left: number, scale: number): HTMLElement[] {
        const depth = path.length;
        const children = depth < DEEPEST ? [...path[depth - 1].children.values()] : [];
        const order = (cell: Cell) => (depth === 1 ? KINDS.indexOf(cell.kind) : 0);
        children.sort((a, b) => order(a) - order(b) || b.bytes - a.bytes);
        const isWide = (cell: Cell) => cell.bytes * scale >= LEAST;
        const cells = children.filter(isWide).flatMap((child) => {
            const [own, begin] = [[...path, child], left];
            left += child.bytes * scale;
            return [this.drawn(own, begin, left - begin, false), ...this.below(own, begin, scale)];
        });
        // Those of which each is too narrow are one pale cell.
        const narrow = children.filter((child) => !isWide(child));
        const width = scale * sum(narrow.map((child) => child.bytes));
        if (width < LEAST) return cells;
        const rest = element("div", "cell rest", width > 70 ? `${narrow.length} more` : "");
        return [...cells, this.placed(rest, left, depth, width, narrow[0].kind)];
    }

    /** The last cell of a path. */
    private drawn(path: Cell[], left: number, width: number, isTop: boolean): HTMLElement {
        const { name, by, kind, bytes: size, count } = path.at(-1)!;
        const short = by === "op" ? name.slice(name.lastIndexOf("/") + 1) : name;
        const made = button(width < 20 ? "" : width < 200 ? short : `${short}  ${bytes(size)}`, "", () => {
            this.zoomed = path.slice(1, isTop ? -1 : undefined).map(keyOf);
            this.draw();
            this.chosen(path.at(-1)!);
        });
        const names = path.slice(1).map((cell) => cell.name).join(" › ") || name;
        const pieces = count ? `, ${count} ${count === 1 ? "buffer" : "buffers"}` : "";
        made.ariaLabel = `${names}: ${bytes(size)}, ${share(size, this.root!.bytes)}${pieces}`;
        made.className = isTop ? "cell top" : "cell";
        const tell = () => (this.readout.textContent = made.ariaLabel);
        made.addEventListener("pointerenter", tell);
        made.addEventListener("focus", tell);
        return this.placed(made, left, path.length - 1, width, kind);
    }

    private placed(cell: HTMLElement, left: number, depth: number, width: number, kind: string): HTMLElement {
        const share = (pixels: number) => `${(100 * pixels) / this.width}%`; // paper has another width
        Object.assign(cell.style, { left: share(left), top: `${depth * ROW}px`, width: `calc(${share(width)} - 1px)` });
        if (width < 20) cell.style.padding = "0";
        if (kind) cell.style.background = variable(kind);
        cell.className += ` ${kind}`; // its text is black or white
        return cell;
    }
}
