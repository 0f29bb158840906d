import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, bytes, count, duration, figure, percent, rate, shown, span, tensor } from "../src/format";

const says = <T>(name: string, write: (value: T) => string, table: [T, string][]) =>
  test(name, () => {
    for (const [value, text] of table) assert.equal(write(value), text);
  });

says<number>("counts are grouped, large ones shortened", count, [
  [0, "0"],
  [999, "999"],
  [1234, "1,234"],
  [9999, "9,999"],
  [12_345, "12.3 k"],
  [123_456, "123 k"],
  [4_560_000, "4.56 M"],
  [7.2e9, "7.20 G"],
]);

says<number>("rates show whether there is any", rate, [
  [0, "0"],
  [0.01, "<0.1"],
  [0.44, "0.4"],
  [9.96, "10"],
  [1234.4, "1,234"],
]);

says<number | null>("durations take the unit that fits", duration, [
  [null, "–"],
  [Number.NaN, "–"],
  [0, "0 s"],
  [0.00042, "420 µs"],
  [0.000999, "999 µs"],
  [0.0009996, "1.00 ms"],
  [0.0123, "12.3 ms"],
  [0.999, "999 ms"],
  [1.236, "1.24 s"],
  [180, "3 min"],
]);

says<number>("long times have two units at most", span, [
  [-1, "0 s"],
  [59.9, "59 s"],
  [61, "1 min"],
  [3600, "1 h"],
  [11_100, "3 h 5 min"],
  [187_200, "2 d 4 h"],
]);

says<number | null>("bytes by powers of 1024", bytes, [
  [null, "–"],
  [0, "0 B"],
  [1023, "1023 B"],
  [1024, "1.00 KiB"],
  [87_654_321, "83.6 MiB"],
  [2 ** 42, "4.00 TiB"],
]);

says<number>("figures keep four digits", figure, [
  [3, "3"],
  [0.123456, "0.1235"],
  [0.00001, "1.00e-5"],
  [1234567.8, "1.23e+6"],
]);

says<number>("shares", percent, [
  [0, "0 %"],
  [0.985, "98.5 %"],
  [1, "100 %"],
]);

says<unknown>("values of a configuration stand on one line", shown, [
  [null, "–"],
  [false, "false"],
  [["a", 1], '["a",1]'],
  ["<b>", "<b>"],
]);

test("moments and signatures", () => {
  assert.equal(ago(100, 100.4), "now");
  assert.equal(ago(100, 195), "1 min ago");
  assert.equal(tensor("FP32", [-1, 3]), "FP32[-1,3]");
});
