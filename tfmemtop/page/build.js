// Bundles src/ into built/: `npm install && npm run build`. What is in built/ is committed, so that users need no Node.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const { metafile } = await build({
    entryPoints: { page: "src/main.ts", style: "src/page.css" },
    entryNames: "page",
    outdir: "built",
    bundle: true,
    minify: true,
    format: "iife",
    target: ["chrome100", "firefox113", "safari16.4"],
    charset: "ascii", // the code is the same in a page of any encoding
    legalComments: "none", // licences.txt has them
    metafile: true,
    logLevel: "info",
});

// The licence of each library of which something is in the bundle.
const folders = Object.keys(metafile.inputs).map((name) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(name)?.[0]);
const licences = [...new Set(folders.filter(Boolean))].sort().map((folder) => {
    const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    return `${name} ${version}\n\n${readFileSync(`${folder}/LICENSE`, "utf8").trim()}\n`;
});
writeFileSync("built/licences.txt", licences.join(`\n${"-".repeat(80)}\n\n`));

// From what this was built, as `sha256sum` writes it: tests/page/test_built.py compares it with the sources.
const sources = [
    "build.js",
    "package.json",
    "tsconfig.json",
    ...readdirSync("src").map((name) => `src/${name}`),
].sort();
const digest = (name) => createHash("sha256").update(readFileSync(name)).digest("hex");
writeFileSync("built/sources.sha256", sources.map((name) => `${digest(name)}  ${name}\n`).join(""));
