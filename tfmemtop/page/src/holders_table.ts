/** The table of holders: a click on a heading sorts, a text filters, and the rows add up to the total. */
import { variable } from "./colours";
import { button, bytes, element, refill, share } from "./elements";
import { arranged, HEADS, sum, type Head, type Row, type Standing } from "./holders_at";
import type { Grouping } from "./moment";

const MOST = 25; // rows, until all are asked for

export class HoldersTable {
    readonly element = element("div", "table holders");
    readonly filter = element("input", "filter");
    private by: Head = "bytes";
    private rising = false;
    private all = false;
    private last: [Standing, Grouping, string | null] | null = null;

    constructor(private readonly chosen: (name: string) => void) {
        this.filter.type = "search";
        this.filter.placeholder = this.filter.ariaLabel = "Filter by name or kind";
        this.filter.addEventListener("input", () => this.draw());
        this.filter.addEventListener("keydown", (event) => event.stopPropagation());
    }

    show(...what: [Standing, Grouping, string | null]): void {
        this.last = what;
        this.draw();
    }

    private draw(): void {
        if (!this.last) return;
        const [standing, grouping, selection] = this.last;
        const found = arranged(standing.rows, this.filter.value, this.by, this.rising);
        // The chosen row is always there.
        const shown = found.filter((row, place) => this.all || place < MOST || row.name === selection);
        const body = element("tbody", "", ...shown.map((row) => this.row(row, standing.total, row.name === selection)));
        const rest = standing.rows.length - shown.length;
        const foot = element("tfoot");
        if (rest) foot.append(this.rest(standing, shown, found.length > shown.length, rest));
        const { leftOut, unknown, total } = standing;
        if (leftOut) foot.append(line("smaller buffers that the page leaves out", "", leftOut, total));
        if (unknown) foot.append(line("unknown", "unknown", unknown, total));
        foot.append(line("in use", "", total, total));
        refill(this.element, element("table", "", this.heads(grouping), body, foot));
    }

    private heads(grouping: Grouping): HTMLElement {
        const cells = HEADS.map((head) => {
            const label = head === "name" ? (grouping === "op" ? "operation" : grouping) : head;
            const made = element("th", HEADS.indexOf(head) > 1 ? "figure" : "");
            made.scope = "col";
            made.ariaSort = head !== this.by ? "none" : this.rising ? "ascending" : "descending";
            const mark = head !== this.by ? "" : this.rising ? " ▲" : " ▼";
            made.append(button(label + mark, `Sort by ${label}`, () => this.sort(head)));
            return made;
        });
        return element("thead", "", element("tr", "", ...cells));
    }

    private sort(head: Head): void {
        this.rising = head === this.by ? !this.rising : head === "name" || head === "kind";
        this.by = head;
        this.draw();
    }

    private row(row: Row, total: number, isChosen: boolean): HTMLElement {
        const name = button(row.name, row.name, () => this.chosen(row.name));
        name.ariaPressed = String(isChosen);
        return line(name, row.kind, row.bytes, total, row.count);
    }

    /** The row of those that are not shown, so that all still add up. */
    private rest(standing: Standing, shown: Row[], mayShow: boolean, count: number): HTMLElement {
        const label = `${count} more ${count === 1 ? "row" : "rows"}`;
        const name = mayShow
            ? button(`${label}: show all`, "Show all rows", () => {
                  this.all = true;
                  this.draw();
              })
            : `${label} without the text of the filter`;
        const left = (of: (row: Row) => number) => sum(standing.rows.map(of)) - sum(shown.map(of));
        return line(name, "", left((row) => row.bytes), standing.total, left((row) => row.count));
    }
}

function line(name: string | HTMLElement, kind: string, size: number, total: number, count?: number): HTMLElement {
    const mark = element("i", "swatch");
    if (kind) mark.style.background = variable(kind);
    const figure = element("td", "figure", bytes(size));
    figure.dataset.bytes = String(size);
    return element(
        "tr",
        "",
        element("td", "", name),
        element("td", "", kind ? mark : null, element("span", "word", kind)),
        figure,
        element("td", "figure", share(size, total)),
        element("td", "figure", count === undefined ? "" : String(count)),
    );
}
