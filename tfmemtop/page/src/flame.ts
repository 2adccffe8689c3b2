/** Who holds the memory, as an icicle: each cell is as wide as its bytes, and what it consists of is below it. */
import { hierarchy, partition, type HierarchyRectangularNode } from "d3-hierarchy";
import { colour, variable } from "./colours";
import { button, bytes, element, share } from "./elements";
import { KINDS, type Cell } from "./holders_at";

type Node = HierarchyRectangularNode<Cell>;

const ROW = 26; // pixels
const LEAST = 2; // pixels: a narrower cell is not drawn
const DEEPEST = 16; // rows

/** An icicle in `place`. A click on a cell makes it as wide as the whole, and `chosen` gets it. */
export class Flame {
    private root: Node | null = null;
    private width = 0; // pixels
    private zoomed: string[] = []; // the keys of the cells from the root to the one that is as wide as the whole

    constructor(
        private readonly place: HTMLElement,
        private readonly readout: HTMLElement,
        private readonly chosen: (cell: Cell) => void,
    ) {
        new ResizeObserver(() => {
            if (this.width === place.clientWidth) return;
            this.width = place.clientWidth;
            this.draw();
        }).observe(place);
    }

    show(root: Cell, keepZoom: boolean): void {
        const order = (node: { data: Cell }) => KINDS.indexOf(node.data.kind);
        const nodes = hierarchy(root, (each) => each.children.values())
            .sort((a, b) => (a.depth === 1 ? order(a) - order(b) : 0) || b.data.bytes - a.data.bytes);
        nodes.each((node) => {
            // A cell's own width is what its children leave over.
            (node as { value?: number }).value = node.data.bytes;
        });
        this.root = partition<Cell>()(nodes as typeof nodes & { value: number });
        if (!keepZoom) this.zoomed = [];
        this.draw();
    }

    /** The deepest cell of the chosen path that there still is. */
    private top(): Node {
        let node = this.root!;
        for (const key of this.zoomed) {
            const next = node.children?.find((child) => keyOf(child) === key);
            if (!next) break;
            node = next;
        }
        return node;
    }

    private draw(): void {
        const { width } = this;
        if (!this.root || !width) return;
        const hadFocus = this.place.contains(document.activeElement);
        const top = this.top();
        const scale = width / (top.x1 - top.x0);
        const cells = top.ancestors().reverse().map((node) => this.drawn(node, 0, width, node === top));
        const add = (node: Node): void => {
            let narrow: Node[] = [];
            for (const child of node.depth < DEEPEST ? (node.children ?? []) : []) {
                const width = (child.x1 - child.x0) * scale;
                if (width < LEAST) {
                    narrow.push(child);
                    continue;
                }
                cells.push(...this.rest(narrow, top, scale), this.drawn(child, (child.x0 - top.x0) * scale, width, false));
                narrow = [];
                add(child);
            }
            cells.push(...this.rest(narrow, top, scale));
        };
        add(top);
        this.place.replaceChildren(...cells);
        this.place.style.height = `${Math.max(...cells.map((each) => parseFloat(each.style.top))) + ROW}px`;
        if (hadFocus) this.place.querySelector<HTMLElement>(".top")!.focus({ preventScroll: true });
    }

    /** One pale cell for neighbours of which each is too narrow. */
    private rest(narrow: Node[], top: Node, scale: number): HTMLElement[] {
        const width = narrow.length ? (narrow.at(-1)!.x1 - narrow[0].x0) * scale : 0;
        if (width < LEAST) return [];
        const made = element("div", "cell rest", width > 70 ? `${narrow.length} more` : "");
        placed(made, (narrow[0].x0 - top.x0) * scale, narrow[0].depth, width);
        made.style.background = variable(narrow[0].data.kind);
        return [made];
    }

    private drawn(node: Node, left: number, width: number, isTop: boolean): HTMLElement {
        const { name, by, kind, bytes: size } = node.data;
        const short = by === "op" ? name.slice(name.lastIndexOf("/") + 1) : name;
        const zoom = () => {
            this.zoomed = (isTop && node.parent ? node.parent : node).ancestors().reverse().slice(1).map(keyOf);
            this.draw();
            this.chosen(node.data);
        };
        const made = button(width < 20 ? "" : width < 200 ? short : `${short}  ${bytes(size)}`, "", zoom);
        made.className = isTop ? "cell top" : "cell";
        made.ariaLabel = this.told(node);
        placed(made, left, node.depth, width);
        if (kind) {
            made.style.background = variable(kind);
            made.style.color = readable(colour(kind));
        }
        const tell = () => (this.readout.textContent = made.ariaLabel);
        made.addEventListener("pointerenter", tell);
        made.addEventListener("focus", tell);
        return made;
    }

    private told(node: Node): string {
        const path = node.ancestors().reverse().slice(1).map((each) => each.data.name).join(" › ") || node.data.name;
        const { bytes: size, count } = node.data;
        const pieces = count ? `, ${count} ${count === 1 ? "buffer" : "buffers"}` : "";
        return `${path}: ${bytes(size)}, ${share(size, this.root!.data.bytes)}${pieces}`;
    }
}

function placed(cell: HTMLElement, left: number, depth: number, width: number): void {
    Object.assign(cell.style, { left: `${left}px`, top: `${depth * ROW}px`, width: `${width - 1}px`, padding: width < 20 ? "0" : "" });
}

const keyOf = (node: { data: Cell }) => `${node.data.kind} ${node.data.name}`;

/** Black or white, whichever is read better on a colour such as `rgb(0, 114, 178)`. */
function readable(ground: string): string {
    const [red, green, blue] = (ground.match(/[\d.]+/g) ?? []).map(Number);
    return 0.299 * red + 0.587 * green + 0.114 * blue > 125 ? "#000" : "#fff";
}
