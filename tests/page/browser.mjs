// Starts a browser and does what standard input says, a JSON object a line: {tab, call, arguments}. Prints an answer a line.
// Arguments: the browser's name, its program, the folder of puppeteer-core, more arguments for the browser.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [name, program, modules, ...options] = process.argv.slice(2);
const found = createRequire(modules + "/").resolve("puppeteer-core");
const { default: puppeteer } = await import(pathToFileURL(found).href);

// Firefox up to 140 cannot be told that a tab is offline: all but this machine is behind a proxy that does not answer.
const nowhere = { "network.proxy.type": 1, "network.proxy.socks": "127.0.0.1", "network.proxy.socks_port": 9 };
const browser = await puppeteer.launch({
  browser: name, executablePath: program, headless: true, args: options, extraPrefsFirefox: nowhere,
});
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

// Firefox up to 140 has a size, but no orientation.
function unlessUnknown(error) {
  if (name !== "firefox" || !String(error).includes("unknown command")) throw error;
}

const calls = {
  goto: ({ page }, url) => page.goto(url, { waitUntil: "load" }).then(() => null),
  ask: ({ page }, code) => page.evaluate(code).then((answer) => answer ?? null),
  until: async ({ page }, code, patience_ms) => {
    // In Firefox, puppeteer's own waiting is eval, which the page's policy forbids.
    const last = Date.now() + patience_ms;
    while (!(await page.evaluate(code))) {
      if (Date.now() > last) throw new Error(`waited in vain for ${code}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  },
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
  resize: ({ page }, width, height) => page.setViewport({ width, height }).catch(unlessUnknown),
  media: async ({ page }, media, scheme) => {
    // puppeteer sets either of the two only.
    const session = await page.createCDPSession();
    await session.send("Emulation.setEmulatedMedia", { media, features: [{ name: "prefers-color-scheme", value: scheme }] });
  },
  offline: ({ page }) => (name === "chrome" ? page.setOfflineMode(true) : null),
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
