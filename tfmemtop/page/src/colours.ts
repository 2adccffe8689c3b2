/** The colours of layers and kinds: those that `page.css` defines for light and for dark, the same in all views. */
import { element } from "./elements";

const drawings: (() => void)[] = [];
const known = new Map<string, string>();

/** The CSS variable of a layer of memory or of a kind of owner: `style.background = variable("gradients")`. */
export function variable(key: string): string {
    return `var(--${key.toLowerCase().replace(/[^a-z]+/g, "-")}, var(--unknown))`;
}

/** The colour itself, for a canvas. It differs between light and dark: draw again on `onTheme`. */
export function colour(key: string): string {
    let found = known.get(key);
    if (found === undefined) {
        const probe = document.body.appendChild(document.createElement("i"));
        probe.style.color = variable(key);
        found = getComputedStyle(probe).color;
        probe.remove();
        known.set(key, found);
    }
    return found;
}

/** A small square in the colour of a layer or a kind; without one, a gap as wide. */
export function swatch(key: string): HTMLElement {
    const made = element("i", "swatch");
    if (key) made.style.background = variable(key);
    return made;
}

/** The names of layers or kinds, each with its colour. */
export function legend(keys: string[]): HTMLElement[] {
    return keys.map((key) => element("span", "", swatch(key), key));
}

/** Call *draw* whenever light becomes dark, or the other way round, and before the page is printed. */
export function onTheme(draw: () => void): void {
    drawings.push(draw);
}

/** The condition of the rule of `page.css` that makes the page dark. */
const dark = Array.from(document.styleSheets[0].cssRules)
    .filter((rule) => rule instanceof CSSMediaRule)
    .find(({ media }) => media.mediaText.includes("prefers-color-scheme"))!.media;

/** Change between light and dark, whatever the reader's system prefers. */
export function changeTheme(): void {
    dark.mediaText = matchMedia(dark.mediaText).matches ? "not all" : "screen";
    drawAgain();
}

function drawAgain(): void {
    known.clear();
    for (const draw of drawings) draw();
}

for (const query of [dark.mediaText, "print"]) matchMedia(query).addEventListener("change", drawAgain);
