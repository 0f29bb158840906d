import assert from "node:assert/strict";
import { test } from "node:test";
import { bars, pretty, texts } from "../src/answers";
import { chatText, EventReader } from "../src/event_stream";
import { inked, type Point } from "../src/drawing";
import { modelAddress, route } from "../src/route";

const best = (answer: unknown) => bars(answer)[0]?.bars[0];

test("bars of every form that servers answer in", () => {
  const v2 = { outputs: [{ name: "p", datatype: "FP32", shape: [1, 3], data: [0.1, 0.7, 0.2] }] };
  assert.deepEqual(best(v2), { label: "1", value: 0.7 });
  assert.equal(bars(v2)[0]?.is_share, true);
  assert.deepEqual(best({ cat: 0.2, dog: 0.8 }), { label: "dog", value: 0.8 });
  assert.deepEqual(best([{ className: "cat", probability: 0.9 }]), { label: "cat", value: 0.9 });
  assert.deepEqual(best([[{ label: "POSITIVE", score: 0.99 }]]), { label: "POSITIVE", value: 0.99 });
  assert.deepEqual(best([[0.1, 0.9]]), { label: "1", value: 0.9 });
  assert.equal(bars([[3, -5]])[0]?.is_share, false);
});

test("rows of a batch stand apart, other answers have no bars", () => {
  const two = { outputs: [{ name: "p", datatype: "FP32", shape: [2, 2], data: [0, 1, 1, 0] }] };
  assert.deepEqual(bars(two).map((one) => one.title), ["p, row 1", "p, row 2"]);
  for (const answer of [null, "text", 3, {}, { words: 6 }, [], { outputs: [{ datatype: "BYTES", shape: [1], data: ["a"] }] }]) {
    assert.deepEqual(bars(answer), []);
  }
});

test("texts that a model wrote", () => {
  assert.deepEqual(texts({ generated_text: "a" }), ["a"]);
  assert.deepEqual(texts([{ generated_text: "a" }]), ["a"]);
  assert.deepEqual(texts({ choices: [{ text: "b" }, { message: { content: "c" } }] }), ["b", "c"]);
  assert.deepEqual(texts({ outputs: [{ datatype: "BYTES", shape: [1], data: ["d"] }] }), ["d"]);
  assert.deepEqual(texts({ error: "no" }), []);
});

test("JSON is laid out, and what JavaScript would round is left alone", () => {
  assert.equal(pretty('{"a":[1,2]}'), '{\n  "a": [ 1, 2 ]\n}');
  assert.equal(pretty('{"a":9223372036854775807}'), '{"a":9223372036854775807}');
  assert.equal(pretty('[0.0010000000474974513,1]'), "[ 0.0010000000474974513, 1 ]");
  assert.equal(pretty("[-9007199254740993]"), "[-9007199254740993]");
  assert.equal(pretty("<b>no</b>"), "<b>no</b>");
});

test("events end anywhere", () => {
  const reader = new EventReader();
  assert.deepEqual(reader.read('data: {"a"'), []);
  assert.deepEqual(reader.read(":1}\r\n\r\n: comment\n\ndata: x\ndata: y\n\nda"), ['{"a":1}', "x\ny"]);
  assert.deepEqual(reader.read("ta: [DONE]\n\n"), ["[DONE]"]);
});

test("a chat's events", () => {
  assert.equal(chatText("[DONE]"), "");
  assert.equal(chatText('{"choices":[{"delta":{"content":"Hi"}}]}'), "Hi");
  assert.equal(chatText('{"choices":[],"usage":{}}'), "");
  assert.throws(() => chatText('{"error":{"message":"too long"}}'), /too long/);
});

test("a drawing is centred and fills the height, wherever it was drawn", () => {
  const line = (x: number, top: number, bottom: number): Point[] => [{ x, y: top }, { x, y: bottom }];
  const one = inked([line(0.5, 0.1, 0.9)], 8);
  assert.deepEqual(inked([line(0.2, 0.4, 0.6)], 8), one);
  const row = (index: number) => one.slice(index * 8, index * 8 + 8);
  assert.ok(Math.max(...row(0)) > 0.2 && Math.max(...row(7)) > 0.2);
  assert.deepEqual(row(3), [...row(3)].reverse());
  assert.ok(row(3)[0] === 0 && (row(3)[3] ?? 0) > 0.4);
  assert.equal(inked([], 28).length, 784);
  assert.ok(inked([[{ x: 0.5, y: 0.5 }]], 8).some((ink) => ink > 0));
});

test("addresses lead there and back", () => {
  const name = "a/b <c>%";
  assert.deepEqual(route(modelAddress(name, "workers")), { page: "model", name, part: "workers" });
  assert.deepEqual(route(modelAddress(name)), { page: "model", name, part: "now" });
  assert.deepEqual(route(""), { page: "overview" });
  assert.deepEqual(route("#/models/%"), { page: "model", name: "%", part: "now" });
  assert.deepEqual(route("#/server"), { page: "server" });
});
