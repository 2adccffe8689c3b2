/** The table of holders: a click on a heading sorts, a text filters, and the rows add up to the total. */
import { swatch } from "./colours";
import { button, element, refill, share, sized, table, type Child } from "./elements";
import { arranged, HEADS, sum, type Head, type Row, type Standing } from "./holders_at";
import type { Grouping, Moment } from "./moment";

const MOST = 25; // rows, until all are asked for

export class HoldersTable {
    readonly element = element("div", "table holders");
    readonly filter = element("input", "filter");
    private by: Head = "bytes";
    private rising = false;
    private all = false;
    private last: Standing | null = null;

    constructor(private readonly moment: Moment) {
        this.filter.type = "search";
        this.filter.placeholder = this.filter.ariaLabel = "Filter by name or kind";
        this.filter.addEventListener("input", () => this.draw());
        this.filter.addEventListener("keydown", (event) => event.stopPropagation());
    }

    show(what: Standing): void {
        this.last = what;
        this.draw();
    }

    private draw(): void {
        if (!this.last) return;
        const { rows, unknown, leftOut, total } = this.last;
        const { grouping, selection } = this.moment.choice;
        const found = arranged(rows, this.filter.value, this.by, this.rising);
        // The chosen row is always there.
        const shown = found.filter((row, place) => this.all || place < MOST || row.name === selection);
        const body = shown.map((row) => {
            const isChosen = row.name === selection;
            const name = button(row.name, row.name, () => {
                this.moment.choose({ selection: isChosen ? null : row.name });
            });
            name.ariaPressed = String(isChosen);
            return line(name, row.kind, row.bytes, total, row.count);
        });
        const foot = [line("in use", "", total, total)];
        if (unknown) foot.unshift(line("unknown", "unknown", unknown, total));
        if (leftOut) foot.unshift(line("smaller buffers that the page leaves out", "", leftOut, total));
        if (shown.length < rows.length) {
            const left = (of: (row: Row) => number) => sum(rows.map(of)) - sum(shown.map(of));
            const name = this.rest(rows.length - shown.length, found.length > shown.length);
            foot.unshift(line(name, "", left((row) => row.bytes), total, left((row) => row.count)));
        }
        const made = table(HEADS.map((head) => this.head(head, grouping)), body, [2, 3, 4], foot);
        made.querySelectorAll("th").forEach((cell, column) => {
            cell.ariaSort = HEADS[column] !== this.by ? "none" : this.rising ? "ascending" : "descending";
        });
        refill(this.element, made);
    }

    private head(head: Head, grouping: Grouping): HTMLElement {
        const label = head === "name" ? (grouping === "op" ? "operation" : grouping) : head;
        const mark = head !== this.by ? "" : this.rising ? " ▲" : " ▼";
        return button(label + mark, `Sort by ${label}`, () => {
            this.rising = head === this.by ? !this.rising : head === "name" || head === "kind";
            this.by = head;
            this.draw();
        });
    }

    /** The name of the row of those that are not shown, so that all still add up. */
    private rest(count: number, mayShow: boolean): HTMLElement | string {
        const label = `${count} more ${count === 1 ? "row" : "rows"}`;
        if (!mayShow) return `${label} without the text of the filter`;
        return button(`${label}: show all`, "Show all rows", () => {
            this.all = true;
            this.draw();
        });
    }
}

function line(name: string | HTMLElement, kind: string, size: number, total: number, count?: number): Child[] {
    const mark = element("span", "", swatch(kind), element("span", "word", kind));
    return [name, mark, sized(size), share(size, total), count === undefined ? "" : String(count)];
}
