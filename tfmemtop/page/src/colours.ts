/** The colours of layers and kinds: those that `page.css` defines for light and for dark, the same in all views. */
import { element } from "./elements";

const changed: (() => void)[] = [];
const known = new Map<string, string>();
const dark = matchMedia("(prefers-color-scheme: dark)");

/** The CSS variable of a layer of memory or of a kind of owner: `style.background = variable("gradients")`. */
export function variable(key: string): string {
    return `var(--${key.toLowerCase().replace(/[^a-z]+/g, "-")}, var(--framework))`;
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

/** The names of layers or kinds, each with its colour. */
export function legend(keys: string[]): HTMLElement[] {
    return keys.map((key) => {
        const mark = element("i", "swatch");
        mark.style.background = variable(key);
        return element("span", "", mark, key);
    });
}

/** Call *draw* whenever light becomes dark, or the other way round, and before the page is printed. */
export function onTheme(draw: () => void): void {
    changed.push(draw);
}

const root = document.documentElement;
const isDark = () => (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";

/** Change between light and dark, whatever the reader's system prefers. */
export function changeTheme(): void {
    setTheme(isDark() ? "light" : "dark");
}

/** Draw in *theme*; without one, as the reader's system prefers. */
function setTheme(theme?: string): void {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    known.clear();
    for (const draw of changed) draw();
}

dark.addEventListener("change", () => setTheme(root.dataset.theme));
let onScreen: string | undefined;
matchMedia("print").addEventListener("change", ({ matches }) => {
    if (matches) onScreen = root.dataset.theme;
    setTheme(matches ? "light" : onScreen); // as paper is
});
