// Starts a browser and does what standard input says, a JSON object a line: {tab, call, arguments}. Prints an answer a line.
// Arguments: the browser's name, its program, the folder of puppeteer-core, more arguments for the browser.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [name, program, modules, ...options] = process.argv.slice(2);
const found = createRequire(modules + "/").resolve("puppeteer-core");
const { default: puppeteer } = await import(pathToFileURL(found).href);

const browser = await puppeteer.launch({ browser: name, executablePath: program, headless: true, args: options });
const tabs = new Map();

async function open(id) {
  const page = await browser.newPage();
  const tab = { page, requests: [], errors: [] };
  page.on("request", (request) => tab.requests.push(request.url()));
  page.on("pageerror", (error) => tab.errors.push(String(error)));
  page.on("console", (message) => {
    if (["error", "warn", "assert"].includes(message.type())) tab.errors.push(message.text());
  });
  page.on("dialog", (dialog) => {
    tab.errors.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  tabs.set(id, tab);
}

const calls = {
  goto: ({ page }, url) => page.goto(url, { waitUntil: "load" }).then(() => null),
  ask: ({ page }, code) => page.evaluate(code).then((answer) => answer ?? null),
  until: ({ page }, code, patience_ms) => page.waitForFunction(code, { timeout: patience_ms }).then(() => null),
  click: ({ page }, selector) => page.click(selector),
  hover: ({ page }, selector) => page.hover(selector),
  press: ({ page }, key) => page.keyboard.press(key),
  type: ({ page }, text) => page.keyboard.type(text),
  point: ({ page }, x, y) => page.mouse.move(x, y),
  click_at: ({ page }, x, y) => page.mouse.click(x, y),
  wheel: ({ page }, delta) => page.mouse.wheel({ deltaY: delta }),
  drag: async ({ page }, x, y, to_x, to_y) => {
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move((x + to_x) / 2, (y + to_y) / 2);
    await page.mouse.move(to_x, to_y);
    await page.mouse.up();
  },
  resize: ({ page }, width, height) => page.setViewport({ width, height }),
  media: async ({ page }, media, scheme) => {
    // puppeteer sets either of the two only.
    const session = await page.createCDPSession();
    await session.send("Emulation.setEmulatedMedia", { media, features: [{ name: "prefers-color-scheme", value: scheme }] });
  },
  offline: ({ page }) => page.setOfflineMode(true),
  heard: ({ requests, errors }) => ({ requests, errors }),
  picture: ({ page }, path, whole) => page.screenshot({ path, fullPage: whole }).then(() => null),
  pdf: ({ page }, path) => page.pdf({ path, printBackground: true }).then(() => null),
  close: ({ page }) => page.close(),
};

console.log(JSON.stringify({ answer: await browser.version() }));
for await (const line of createInterface({ input: process.stdin })) {
  const { tab, call, args } = JSON.parse(line);
  try {
    if (!tabs.has(tab)) await open(tab);
    console.log(JSON.stringify({ answer: (await calls[call](tabs.get(tab), ...args)) ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ failure: String(error) }));
  }
}
await browser.close();
