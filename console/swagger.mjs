// Writes the page at /docs: Swagger UI's own files, compressed, and ours: node swagger.mjs FOLDER

import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const theirs = here("node_modules/swagger-ui-dist");
const folder = join(process.argv[2], "docs");

mkdirSync(folder, { recursive: true });
for (const name of ["swagger-ui-bundle.js", "swagger-ui.css"]) {
  writeFileSync(join(folder, `${name}.gz`), gzipSync(readFileSync(join(theirs, name)), { level: 9 }));
}
for (const name of ["LICENSE", "NOTICE", "swagger-ui-bundle.js.LICENSE.txt"]) {
  copyFileSync(join(theirs, name), join(folder, name));
}
for (const name of ["index.html", "docs.js"]) copyFileSync(here(`docs/${name}`), join(folder, name));
