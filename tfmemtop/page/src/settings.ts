/** The findings of the chosen run, its settings as requested and as they are in effect, and other settings' effects. */
import type { Finding, Page, Run } from "./data";
import { button, clock, element, sentence, table } from "./elements";
import { OF_RUN, type Moment } from "./moment";
import { sign } from "./verdict";

export function mount(place: HTMLElement, _page: Page, moment: Moment): void {
    moment.on(OF_RUN, () => place.replaceChildren(...(moment.run ? parts(moment.run, moment) : [])));
}

function* parts(run: Run, moment: Moment): Iterable<Node> {
    if (run.findings.length) {
        yield element("h3", "", "Findings");
        yield element("ul", "findings", ...run.findings.map((finding) => found(finding, moment)));
    }
    if (run.settingRows.length) {
        yield element("h3", "", "Settings");
        yield table(["setting", "requested", "in effect", "set in"], run.settingRows);
    }
    for (const { device, about, columns, rows, sentences } of run.whatIf) {
        yield element("h3", "", `${device} under other settings`);
        yield element("p", "note", about.join(" "));
        yield table(columns, rows, [3, 4, 5, 6, 7, 8, 9]);
        yield element("p", "note", sentences.join(" "));
    }
}

function found({ severity, text, began, ended }: Finding, moment: Moment): HTMLElement {
    const until = ended === null ? "to the end" : `to ${clock(ended)}`;
    const time = button(`${clock(began)} ${until}`, "Go to this moment", () => moment.choose({ at: began }));
    return element("li", severity, sign(severity), sentence(text), time);
}
