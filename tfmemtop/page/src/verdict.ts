/** The head of the page: the verdict of the chosen run, what it rests on, what helps, and the run's facts. */
import type { Answer, Comparison, Page, Run, Session, Severity } from "./data";
import { button, clock, element, sentence } from "./elements";
import { OF_RUN, type Moment } from "./moment";

const SIGNS = { fatal: "✖", warning: "▲", info: "●", good: "✔" };

/** A severity as a sign and, for those who do not see it, as a word. */
export function sign(severity: Severity): HTMLElement {
    const made = element("span", "sign", SIGNS[severity]);
    made.role = "img";
    made.ariaLabel = severity;
    return made;
}

export function mount(place: HTMLElement, page: Page, moment: Moment): void {
    place.className = "view head";
    moment.on(OF_RUN, () => {
        const { session, run } = moment;
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
    const first = sentence(comparison.text[0] ?? "");
    yield element("p", "", element("b", "", comparison.title), ". ", first, " ", link);
}

function* verdict({ heading, verdict, answers }: Run): Iterable<Node> {
    yield element("p", "note", heading);
    yield element("h1", `verdict ${verdict.severity}`, sign(verdict.severity), " ", sentence(verdict.text));
    if (verdict.evidence) yield element("p", "evidence", sentence(verdict.evidence));
    if (verdict.remedies.length) {
        yield element("h3", "", "What helps");
        yield element("ul", "remedies", ...verdict.remedies.map((remedy) => element("li", "", sentence(remedy))));
    }
    if (verdict.command) yield toCopy("Command to run", verdict.command);
    if (verdict.code) yield toCopy("Code for the program", verdict.code);
    const all = element("details", "answers", element("summary", "", "Common questions, answered for this run"));
    all.append(...answers.map(folded));
    all.open = innerWidth > 760; // on a phone, memory over time comes first
    yield all;
}

function folded({ question, line, paragraphs }: Answer): HTMLElement {
    const summary = element("summary", "", element("b", "", question), " ", sentence(line));
    return element("details", "", summary, ...paragraphs.map((text) => element("p", "", sentence(text))));
}

function facts(session: Session, run: Run | undefined, end: number): HTMLElement {
    const began = new Date(1000 * (session.began + (run?.began ?? 0)));
    const rows: [string, string][] = [
        ["recording", session.name],
        ["place", session.placement],
        ["began", began.toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short" })],
    ];
    const unended = end === run?.ended ? "" : ", the end is not recorded";
    if (run) rows.push(["took", clock(end - run.began) + unended], ...run.facts);
    const known = rows.filter(([, value]) => value);
    const pairs = known.flatMap(([name, value]) => [element("dt", "", name), element("dd", "", value)]);
    return element("dl", "facts", ...pairs);
}

/** A text with a button that selects and copies it: in the old way, which a page from a disk or a mail may use too. */
function toCopy(label: string, text: string): HTMLElement {
    const code = element("code", "", text);
    const copy = button("Copy", "Copy to the clipboard", () => {
        getSelection()!.selectAllChildren(code);
        copy.textContent = document.execCommand("copy") ? "Copied" : "Selected: Ctrl+C";
    });
    return element("figure", "copy", element("figcaption", "", label, copy), element("pre", "", code));
}
