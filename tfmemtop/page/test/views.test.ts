/** `npm test`: what the views compute of a window, by Node's own test runner. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Owner, Pool, Window } from "../src/data";
import { alive, arranged, inUse, standing, tree } from "../src/holders_at";
import { picture, shapeAt, sizeAt } from "../src/lifetimes_at";
import { fragmentation, gapsOf, mapAt, rowsOf } from "../src/map_at";
import { eventAt, stepped, timeOf } from "../src/moment";

const owner = (kind: string, layer: string, op: string, line = ""): Owner => {
    return { kind, layer, op, shape: "", line, code: "", stack: line ? ["train.py:1", line] : [] };
};

/** Weights of 100 bytes that stay; an activation of 60; a gradient of 30 and scratch of 10 in the same microsecond. */
const step: Window = {
    title: "one step",
    about: "",
    began: 10,
    ended: 10.00005,
    peak: 205,
    peakAt: 2,
    unknown: 5,
    leftOut: 0,
    times_us: [10, 10, 0, 0, 10, 10],
    owners: [
        owner("variables", "dense", "dense/kernel"),
        owner("activations", "dense", "model/dense/Relu", "train.py:7"),
        owner("gradients", "dense", "gradient_tape/dense/MatMul", "train.py:7"),
        owner("unknown", "", ""),
    ],
    owner: [0, 1, 2, 3],
    bytes: [100, 60, 30, 10],
    address: [0, 128, 256, -1],
    base: 4096,
    from: [-1, 0, 1, 2],
    to: [-1, 4, 5, 3],
};

test("rows and the unknown bytes add up to what is in use", () => {
    const found = standing(step, step.peakAt, "layer");
    assert.deepEqual(found.rows, [{ name: "dense", kind: "variables", bytes: 190, count: 3 }]);
    assert.equal(found.unknown, 15);
    assert.equal(found.total, step.peak);
    for (const by of ["op", "kind", "shape", "line"] as const) assert.equal(standing(step, 2, by).total, step.peak);
});

test("a row without a name has that of its kind", () => {
    const names = (by: "line" | "shape") => standing(step, 2, by).rows.map((row) => row.name);
    assert.deepEqual(names("line"), ["variables", "train.py:7"]);
    assert.deepEqual(names("shape"), ["no shape known", "no shape known", "no shape known"]); // of three kinds
});

test("a text filters the rows, a heading sorts them", () => {
    const { rows } = standing(step, 2, "op");
    assert.deepEqual(arranged(rows, "RELU", "bytes", false).map((row) => row.bytes), [60]);
    assert.deepEqual(arranged(rows, "", "bytes", true).map((row) => row.bytes), [30, 60, 100]);
    assert.equal(arranged(rows, "", "name", true)[0].name, "dense/kernel");
});

test("the bytes after each event are those of the buffers then in use", () => {
    assert.deepEqual([...inUse(step)], [105, 165, 195, 205, 195, 135, 105]);
    assert.deepEqual(alive(step, -1), [0]);
    assert.deepEqual([...inUse(step, [false, true, false, false])], [0, 60, 60, 60, 60, 0, 0]);
});

test("the cells of the icicle add up", () => {
    for (const byStack of [false, true]) {
        const root = tree(step, 2, byStack);
        assert.equal(root.bytes, step.peak);
        assert.equal([...root.children.values()].reduce((sum, cell) => sum + cell.bytes, 0), step.peak);
    }
    const names = Array.from(tree(step, 2, true).children.values(), (cell) => cell.name);
    assert.deepEqual(names, ["unknown", "variables", "train.py:1", "train.py:1"]); // by kind where there is no stack
});

test("the peak is chosen among the events of its microsecond, and a step leaves that microsecond", () => {
    const peak = timeOf(step, step.peakAt);
    assert.equal(eventAt(step, peak), step.peakAt);
    assert.equal(eventAt(step, stepped(step, peak, 1)), 4);
    assert.equal(eventAt(step, stepped(step, peak, -1)), 0);
    assert.equal(eventAt(step, stepped(step, 10, -1)), -1);
});

test("no column of the picture loses the peak, and its shapes are as high as what is in use", () => {
    for (const count of [1, 3, 100]) {
        const shown = picture(step, { from: 0, to: 5e-5 }, count, 20);
        const heights = new Array<number>(count).fill(0);
        for (const shape of shown.shapes) {
            for (let column = shape.first; column <= shape.last; column++) heights[column] += sizeAt(shape, column);
        }
        assert.equal(Math.max(...heights), step.peak);
        assert.deepEqual(heights, shown.events.map((event) => inUse(step)[event + 1]));
    }
});

test("what lies under a point of the picture", () => {
    const shown = picture(step, { from: 0, to: 5e-5 }, 4, 0);
    const at = (column: number, height: number) => shapeAt(shown, column, height)?.place;
    assert.equal(at(0, 50), 0);
    assert.equal(at(1, 150), 1);
    assert.equal(at(3, 150), undefined);
});

const pool: Pool = {
    pid: 1,
    device: "GPU:0",
    place: "0",
    owners: step.owners,
    windows: [step],
    shown: 0,
    maps: [
        {
            at: 12,
            base: 4096,
            free: 256,
            largestFree: 128,
            regions: [
                { address: 0, size: 512, since: 1, inUse: 256, shares: [255, 0, 255, 0], kinds: ["variables", "", "loss", ""], names: ["dense", "", "mse", ""] },
            ],
        },
    ],
};

test("a map of a moment of a window has its buffers, and the gaps between them", () => {
    const shown = mapAt(pool, step, timeOf(step, 1))!;
    assert.equal(shown.exact, true);
    assert.deepEqual(gapsOf(shown.regions).map((gap) => [gap.size, gap.name]), [
        [226, "between dense/MatMul and the region's end"],
        [68, "between dense/Relu and dense/MatMul"],
        [28, "between dense/kernel and dense/Relu"],
    ]);
    assert.equal(shown.free, 512 - 190);
});

test("without a map, the regions are drawn around the buffers", () => {
    const shown = mapAt({ ...pool, maps: [] }, step, timeOf(step, 1))!;
    assert.deepEqual([shown.regions.length, shown.inUse, shown.elsewhere, shown.free], [1, 190, 190, 96]);
});

test("a map of another moment has the cells that were recorded", () => {
    const shown = mapAt(pool, step, 11)!;
    assert.equal(shown.exact, false);
    assert.equal(fragmentation(shown), 0.5);
    assert.deepEqual(gapsOf(shown.regions).map((gap) => [gap.size, gap.name]), [
        [128, "between dense and mse"],
        [128, "between mse and the region's end"],
    ]);
});

test("rows of a map cover its regions without a rest", () => {
    const region = (address: number, size: number) => ({ address, size, since: null, pieces: [] });
    const regions = [region(0, 2 ** 32), region(2 ** 40, 2 ** 20)];
    const { rows, bytes } = rowsOf(regions, 24);
    assert.ok(rows.length <= 24 && bytes < 2 ** 32);
    assert.equal(rows.reduce((sum, row) => sum + row.to - row.from, 0), 2 ** 32 + 2 ** 20);
});
