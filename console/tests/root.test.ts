import assert from "node:assert/strict";
import { test } from "node:test";
import { rootOf } from "../src/root";

for (const [pathname, root] of [
  ["/", ""],
  ["/console", ""],
  ["/models/", "/models"],
  ["/models/console", "/models"],
  ["/a/b/", "/a/b"],
] as const) {
  test(`the server's routes begin below what the page lies in: ${pathname}`, () => {
    assert.equal(rootOf(pathname), root);
  });
}
