/** The colours of layers and kinds: those that `page.css` defines for light and for dark, the same in all views. */

const LISTENERS: (() => void)[] = [];

/** The CSS variable of a layer of memory or of a kind of owner: `style.background = variable("gradients")`. */
export function variable(key: string): string {
    return `var(--${name(key)}, var(--framework))`;
}

/** The colour itself, for a canvas. It differs between light and dark: draw again on `onTheme`. */
export function colour(key: string): string {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = variable(key);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
}

const name = (key: string) => key.replace(/[^a-z]+/g, "-");

/** Call *draw* whenever light becomes dark, or the other way round. */
export function onTheme(draw: () => void): void {
    LISTENERS.push(draw);
}

const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => LISTENERS.forEach((draw) => draw()));

/** Change between light and dark, whatever the reader's system prefers. */
export function changeTheme(): void {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
    root.dataset.theme = isDark ? "light" : "dark";
    LISTENERS.forEach((draw) => draw());
}
