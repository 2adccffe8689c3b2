/** The head of the page: the verdict of the chosen run, what it rests on, what helps, and the run's facts. */
import type { Answer, Comparison, Page, Run, Session } from "./data";
import { button, clock, element } from "./elements";
import type { Moment } from "./moment";

const SIGNS = { fatal: "✖", warning: "▲", info: "●", good: "✔" };
export type Severity = keyof typeof SIGNS;

/** A severity as a sign and, for those who do not see it, as a word. */
export function sign(severity: Severity): HTMLElement {
    const made = element("span", "sign", SIGNS[severity]);
    made.role = "img";
    made.ariaLabel = severity;
    return made;
}

export function mount(place: HTMLElement, page: Page, moment: Moment): void {
    moment.subscribe((_choice, changed) => {
        if (!changed.has("session") && !changed.has("run")) return;
        const { session, run } = moment;
        place.className = "view head";
        const told = run ? verdict(run) : [element("h1", "verdict", "No program was started in this session.")];
        const notes = session.notes.map((note) => element("p", "note", note));
        place.replaceChildren(
            element("div", "", ...beside(page.comparison), ...told),
            element("aside", "", facts(session, run, moment.end), ...notes),
        );
    });
}

/** What several sessions differ in, above the verdict of the chosen one. */
function* beside(comparison: Comparison | null): Iterable<Node> {
    if (!comparison) return;
    const link = element("a", "", "Side by side");
    link.href = "#comparison";
    yield element("p", "", element("b", "", comparison.title), `. ${comparison.text[0] ?? ""} `, link);
}

function* verdict({ heading, verdict, answers }: Run): Iterable<Node> {
    yield element("p", "note", heading);
    yield element("h1", `verdict ${verdict.severity}`, sign(verdict.severity), " ", verdict.text);
    if (verdict.evidence) yield element("p", "evidence", verdict.evidence);
    if (verdict.remedies.length) {
        yield element("h3", "", "What helps");
        yield element("ul", "remedies", ...verdict.remedies.map((remedy) => element("li", "", remedy)));
    }
    if (verdict.command) yield toCopy("Command to run", verdict.command);
    if (verdict.code) yield toCopy("Code for the program", verdict.code);
    const all = element("details", "answers", element("summary", "", "Five common questions, answered for this run"));
    all.append(...answers.map(folded));
    all.open = innerWidth > 760; // on a phone, memory over time comes first
    yield all;
}

function folded({ question, line, paragraphs }: Answer): HTMLElement {
    const summary = element("summary", "", element("b", "", question), " ", line);
    return element("details", "", summary, ...paragraphs.map((text) => element("p", "", text)));
}

function facts(session: Session, run: Run | undefined, end: number): HTMLElement {
    const rows: [string, string][] = [["recording", session.name]];
    if (session.placement) rows.push(["place", session.placement]);
    const began = new Date(1000 * (session.began + (run?.began ?? 0)));
    rows.push(["began", began.toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short" })]);
    if (run) {
        rows.push(["took", clock(end - run.began) + (end === run.ended ? "" : ", the end is not recorded")]);
        rows.push(["command", run.command], ["settings", run.settings], ...run.facts);
    }
    const known = rows.filter(([, value]) => value);
    const pairs = known.flatMap(([name, value]) => [element("dt", "", name), element("dd", "", value)]);
    return element("dl", "facts", ...pairs);
}

/** A text with a button that copies it. Where the clipboard is refused, the text is selected, to be copied by a key. */
function toCopy(label: string, text: string): HTMLElement {
    const code = element("code", "", text);
    const copy = button("Copy", "Copy to the clipboard", () => {
        const told = (word: string) => (copy.textContent = word);
        Promise.resolve(navigator.clipboard?.writeText(text) ?? Promise.reject()).then(
            () => told("Copied"),
            () => told(selected(code) ? "Copied" : "Selected: Ctrl+C"),
        );
    });
    return element("figure", "copy", element("figcaption", "", label, copy), element("pre", "", code));
}

/** Select what *shown* contains, and try the old way to copy it. */
function selected(shown: HTMLElement): boolean {
    getSelection()!.selectAllChildren(shown);
    return document.execCommand("copy");
}
