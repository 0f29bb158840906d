import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { bodyText, chatRequest, firstText, v2Request, waysToAsk, withText } from "../src/asking";
import { type Prepared, snippet } from "../src/snippets";

const ORIGIN = "http://127.0.0.1:8080";
const request = (text: string, more: Partial<Prepared> = {}): Prepared => ({
  method: "POST",
  path: "/predictions/words",
  headers: [["Content-Type", "text/plain"]],
  body: { text },
  ...more,
});
const HARD = "it's \"quoted\" $HOME `id` \\ \n two lines, 日本 \u{1f600} \u2028 %";

test("what the shell takes out of the curl line is what was typed", () => {
  const line = snippet("curl", request(HARD), ORIGIN).replace(/^curl /, "printf '%s\\0' ");
  const words = execFileSync("sh", ["-c", line]).toString().split("\0").slice(0, -1);
  assert.deepEqual(words, ["-s", `${ORIGIN}/predictions/words`, "-H", "Content-Type: text/plain", "--data-raw", HARD]);
});

test("what Python reads out of its literal is what was typed", () => {
  const code = snippet("Python", request(HARD), ORIGIN);
  const literal = /data=(.*)\.encode\(\),/.exec(code)?.[1] ?? "";
  const program = `import sys; sys.stdout.buffer.write(${literal}.encode())`;
  assert.equal(execFileSync("python3", ["-c", program]).toString(), HARD);
  execFileSync("python3", ["-c", "import ast, sys; ast.parse(sys.stdin.read())"], { input: code });
});

test("JavaScript's is a module that node accepts", () => {
  const file: Prepared = request("", { body: { file: new Blob(["x"]), name: "a'b.png" } });
  for (const one of [request(HARD), file, chatRequest("m", [], { max_tokens: 1, temperature: 0 })]) {
    const code = snippet("JavaScript", one, ORIGIN);
    execFileSync(process.execPath, ["--input-type=module", "--check", "-"], { input: code });
  }
});

test("files, methods and streams", () => {
  const file = request("", { body: { file: new Blob(["x"]), name: "a b.png" } });
  assert.match(snippet("curl", file, ORIGIN), /--data-binary '@a b\.png'$/);
  assert.match(snippet("Python", file, ORIGIN), /open\("a b\.png", "rb"\)/);
  assert.equal(snippet("curl", request("", { method: "GET", body: null, headers: [] }), ORIGIN), `curl -s ${ORIGIN}/predictions/words`);
  assert.match(snippet("curl", request("x", { method: "PUT" }), ORIGIN), /^curl -s -X PUT /);
  const chat = chatRequest("m", [{ role: "user", content: "Hi" }], { max_tokens: 5, temperature: 0 });
  assert.match(snippet("curl", chat, ORIGIN), /^curl -sN /);
});

test("a model's name is one part of its path", () => {
  assert.equal(v2Request("a/b c", "{}").path, "/v2/models/a%2Fb%20c/infer");
});

test("the first text of an example is the one that is edited", () => {
  const example = { inputs: [{ text: "old", lang: "en" }], n: 1 };
  assert.equal(firstText(example), "old");
  assert.deepEqual(withText(example, "new"), { inputs: [{ text: "new", lang: "en" }], n: 1 });
  assert.equal(bodyText({ text: "a\n b" }), '{ "text": "a\\n b" }');
  assert.equal(bodyText("plain"), "plain");
});

test("a digit can be drawn where ten classes are told apart, or a picture is taken", () => {
  const image = [{ name: "x", datatype: "FP32", shape: [-1, 1, 8, 8] }];
  assert.deepEqual(waysToAsk(["tensors"], image, [{ shape: [-1, 10] }]), ["digit", "tensors", "body"]);
  assert.deepEqual(waysToAsk(["tensors"], image, [{ shape: [-1, 3] }]), ["tensors", "body"]);
  assert.deepEqual(waysToAsk(["picture"], [], []), ["picture", "digit", "body"]);
  assert.deepEqual(waysToAsk(["digit", "body"], [], []), ["body"]);
});
