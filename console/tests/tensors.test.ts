import assert from "node:assert/strict";
import { test } from "node:test";
import { drawnInput, filled, inferBody, type Read, readShape, readValues, type TensorSpec } from "../src/tensors";

const spec = (datatype: string, shape: number[], more: Partial<TensorSpec> = {}): TensorSpec => ({
  name: "x",
  datatype,
  shape,
  ...more,
});

const value = <T>(read: Read<T>): T => {
  assert.ok("value" in read, "fault" in read ? read.fault : "");
  return read.value;
};
const fault = <T>(read: Read<T>): string => {
  assert.ok("fault" in read);
  return read.fault;
};

test("a shape is typed in any of the usual ways", () => {
  for (const text of ["2, 3", "[2,3]", "2 x 3", "(2 3)", "2 × 3"]) {
    assert.deepEqual(value(readShape(text, spec("FP32", [-1, 3]))), [2, 3]);
  }
  assert.match(fault(readShape("2", spec("FP32", [-1, 3]))), /1 dimensions, the model wants 2/);
  assert.match(fault(readShape("2, 4", spec("FP32", [-1, 3]))), /dimension 2 is 4, the model wants 3/);
  assert.match(fault(readShape("-1, 3", spec("FP32", [-1, 3]))), /"-1" is no size/);
});

test("numbers stay as they were typed", () => {
  const read = (text: string, datatype: string) => value(readValues(text, spec(datatype, [-1])));
  assert.deepEqual(read("9223372036854775807 -1", "INT64"), ["9223372036854775807", "-1"]);
  assert.deepEqual(read("[[1, .5], [2., 1e-3]]", "FP32"), ["1", "0.5", "2", "1e-3"]);
  assert.deepEqual(read("+007 -00 0", "INT32"), ["7", "-0", "0"]);
  assert.deepEqual(read("01.50", "FP64"), ["1.50"]);
  assert.deepEqual(read("true 0 False 1", "BOOL"), ["true", "false", "false", "true"]);
  assert.deepEqual(read('two\n"words"', "BYTES"), ['"two"', '"\\"words\\""']);
  assert.deepEqual(read('["a", ["b\\n"]]', "BYTES"), ['"a"', '"b\\n"']);
});

test("a wrong element is named by its place", () => {
  assert.match(fault(readValues("1 2 three", spec("FP32", [-1]))), /element 3, "three", is no FP32/);
  assert.match(fault(readValues("1.5", spec("INT8", [-1]))), /is no INT8/);
  assert.match(fault(readValues("-1", spec("UINT8", [-1]))), /is no UINT8/);
  assert.match(fault(readValues("NaN", spec("FP32", [-1]))), /is no FP32/);
  assert.match(fault(readValues("[1]", spec("BYTES", [-1]))), /must be a text/);
});

test("the body of a request is JSON, and counts", () => {
  const specs = [spec("FP32", [-1, 2]), spec("INT64", [1], { name: "k", is_optional: true })];
  const body = value(inferBody(specs, { x: { shape: "1, 2", values: "1 2" }, k: { shape: "1", values: "" } }));
  assert.deepEqual(JSON.parse(body), { inputs: [{ name: "x", shape: [1, 2], datatype: "FP32", data: [1, 2] }] });
  assert.match(
    fault(inferBody(specs, { x: { shape: "1, 2", values: "1 2 3" } })),
    /x: 3 elements, but the shape 1 × 2 has 2/,
  );
});

test("filling", () => {
  assert.equal(filled("FP32", 3), "0, 0, 0");
  assert.equal(filled("INT8", 2, () => 0.55), "5, 5");
  assert.equal(filled("BOOL", 2, () => 0.55), "true, true");
  assert.equal(filled("BYTES", 2), "text\ntext");
});

test("a drawing fits one input of 64 or 784 numbers", () => {
  assert.deepEqual(drawnInput([spec("FP32", [-1, 1, 8, 8])])?.side, 8);
  assert.deepEqual(drawnInput([spec("UINT8", [-1, 28, 28])])?.most, 255);
  assert.equal(drawnInput([spec("BYTES", [64])]), null);
  assert.equal(drawnInput([spec("FP32", [8, 8]), spec("FP32", [1], { name: "y" })]), null);
  const optional = [spec("FP32", [8, 8], { is_optional: true }), spec("BYTES", [1], { name: "y", is_optional: true })];
  assert.equal(drawnInput(optional)?.spec.name, "x");
  assert.equal(drawnInput([]), null);
});
