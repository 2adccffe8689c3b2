/**
 * The page. `tfmemtop report` writes an HTML file with
 *
 *     <main id="page">…what the page says without scripts…</main>
 *     <script type="application/octet-stream" id="data">…gzip in base64…</script>
 *     <script>…built/page.js…</script>
 *
 * This module reads the data and puts the views in place of what `main` has. A view is a module that exports
 * `mount(element, page, moment)`: it fills the element, subscribes to the moment, and never looks at another view.
 */
import * as account from "./account";
import { changeTheme } from "./colours";
import * as comparison from "./comparison";
import type { Page } from "./data";
import { button, element, refill, select } from "./elements";
import * as holders from "./holders";
import { listen, showHelp } from "./keys";
import * as lifetimes from "./lifetimes";
import * as map from "./map";
import { Moment, OF_RUN } from "./moment";
import * as settings from "./settings";
import * as time from "./time";
import * as verdict from "./verdict";

type View = { mount(element: HTMLElement, page: Page, moment: Moment): void };

/** The keys 1 to 7 go to the sections, in this order. */
const SECTIONS: { id: string; title: string; views: View[] }[] = [
    { id: "verdict", title: "Verdict", views: [verdict] },
    { id: "time", title: "Memory over time", views: [time] },
    { id: "holders", title: "Who holds it", views: [holders] },
    { id: "lifetimes", title: "Lifetimes", views: [lifetimes] },
    { id: "map", title: "The pool's map", views: [map] },
    { id: "account", title: "Account and settings", views: [account, settings] },
    { id: "comparison", title: "Side by side", views: [comparison] },
];

async function read(): Promise<Page> {
    const text = document.getElementById("data")!.textContent!.trim();
    const zipped = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([zipped]).stream().pipeThrough(new DecompressionStream("gzip"));
    const page = (await new Response(stream).json()) as Page;
    const pools = page.sessions.flatMap((session) => session.runs.flatMap((run) => run.pools));
    for (const { windows, owners } of pools) windows.forEach((window) => (window.owners = owners));
    return page;
}

function show(page: Page): void {
    const moment = new Moment(page);
    const main = document.getElementById("page")!;
    const sections = SECTIONS.filter(({ id }) => id !== "comparison" || page.comparison);
    main.replaceChildren(bar(page, moment, sections));
    for (const { id, title, views } of sections) {
        const section = main.appendChild(element("section", "", element("h2", "", title)));
        Object.assign(section, { id, tabIndex: -1 });
        for (const { mount } of views) mount(section.appendChild(element("div", "view")), page, moment);
    }
    main.append(element("footer", "note", `Written by tfmemtop ${page.tfmemtop}.`));
    listen(moment, sections);
    document.documentElement.dataset.drawn = "true"; // what tests wait for
}

/** The bar that stays at the top: the session and the run to choose, the sections, light or dark, the keys. */
function bar(page: Page, moment: Moment, sections: { id: string; title: string }[]): HTMLElement {
    const links = sections.map(({ id, title }, place) => {
        const link = element("a", "", element("kbd", "", String(place + 1)), title);
        link.href = `#${id}`;
        return link;
    });
    const choices = element("span", "choices");
    moment.on(OF_RUN, (choice) => {
        const sessions = page.sessions.map(({ name, placement }) => (placement ? `${name}: ${placement}` : name));
        const runs = moment.session.runs.map(({ number, settings }) => `${number}: ${settings}`);
        refill(
            choices,
            select("session", sessions, choice.session, (session) => moment.choose({ session })),
            select("run", runs, choice.run, (run) => moment.choose({ run })),
        );
    });
    const ends = [button("◐", "Light or dark", changeTheme), button("?", "The keys (?)", showHelp)];
    return element("nav", "bar", element("b", "", "tfmemtop"), choices, element("span", "links", ...links), ...ends);
}

read().then(show, (error: unknown) => {
    document.getElementById("page")!.prepend(element("p", "note", `The page's data could not be read: ${error}`));
});
