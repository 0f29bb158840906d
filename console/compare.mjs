// Holds the built page beside the committed one, byte by byte, and beside its bound: node compare.mjs BUILT COMMITTED

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const MOST = 120_000; // bytes, all files compressed

const [built, committed] = process.argv.slice(2);
const files = (folder) => readdirSync(folder).sort();
const faults = [];
let size = 0;
if (files(built).join() !== files(committed).join()) {
  faults.push(`${committed} holds ${files(committed).join(", ")}; built are ${files(built).join(", ")}`);
}
for (const name of files(built)) {
  const content = readFileSync(join(built, name));
  size += gzipSync(content, { level: 9 }).length;
  if (files(committed).includes(name) && !content.equals(readFileSync(join(committed, name)))) {
    faults.push(`${join(committed, name)} is not what its sources make`);
  }
}
if (size > MOST) faults.push(`the page has ${size} bytes compressed, may have ${MOST}`);
if (faults.length) {
  console.error(`${faults.join("\n")}\nRun: make console-build, and commit what it writes.`);
  process.exit(1);
}
console.log(`console: the committed page is what its sources make, ${(size / 1000).toFixed(1)} kB compressed`);
