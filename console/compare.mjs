// Holds the built page beside the committed one, byte by byte, and beside its bound: node compare.mjs BUILT COMMITTED

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";

const MOST = { ".": 120_000, docs: 500_000 }; // bytes, all files of a folder compressed

const [built, committed] = process.argv.slice(2);
const files = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.replace(/\/+$/, "").length + 1))
    .sort();
// What was compressed by another version of zlib is the same all the same.
const read = (file) => (file.endsWith(".gz") ? gunzipSync(readFileSync(file)) : readFileSync(file));
const faults = [];
const sizes = {};
if (files(built).join() !== files(committed).join()) {
  faults.push(`${committed} holds ${files(committed).join(", ")}; built are ${files(built).join(", ")}`);
}
for (const name of files(built)) {
  const content = read(join(built, name));
  sizes[dirname(name)] = (sizes[dirname(name)] ?? 0) + gzipSync(content, { level: 9 }).length;
  if (files(committed).includes(name) && !content.equals(read(join(committed, name)))) {
    faults.push(`${join(committed, name)} is not what its sources make`);
  }
}
for (const [folder, size] of Object.entries(sizes)) {
  if (size > MOST[folder]) faults.push(`${folder} has ${size} bytes compressed, may have ${MOST[folder]}`);
}
if (faults.length) {
  console.error(`${faults.join("\n")}\nRun: make console-build, and commit what it writes.`);
  process.exit(1);
}
const told = Object.entries(sizes).map(([folder, size]) => `${folder} ${(size / 1000).toFixed(1)} kB`);
console.log(`console: the committed pages are what their sources make, compressed ${told.join(", ")}`);
