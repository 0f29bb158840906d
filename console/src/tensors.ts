// Tensors as somebody types them, and the v2 request that they make. Pure; numbers stay as they were typed, so that no
// 64-bit integer is rounded on its way.

export interface TensorSpec {
  name: string;
  datatype: string;
  shape: number[];
  is_optional?: boolean;
}

export interface Typed {
  shape: string;
  values: string;
}

/** What was typed, or why it cannot be sent. */
export type Read<T> = { value: T } | { fault: string };

const SIDES = [8, 28, 32];
const INTEGER = /^[+-]?\d+$/;
const FLOAT = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/** A shape to begin with: every open dimension is one. */
export function firstShape(spec: TensorSpec): number[] {
  return spec.shape.map((size) => (size < 0 ? 1 : size));
}

export function elements(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** A shape as typed, "1, 3" or "[1,3]", held against the model's. */
export function readShape(text: string, spec: TensorSpec): Read<number[]> {
  const words = text.replace(/[[\]()]/g, " ").split(/[\s,×x]+/).filter(Boolean);
  const wrong = words.find((word) => !/^\d+$/.test(word));
  if (wrong !== undefined) return { fault: `${spec.name}: "${wrong}" is no size; a shape is like 1, 3` };
  const shape = words.map(Number);
  if (shape.length !== spec.shape.length) {
    return { fault: `${spec.name}: the shape has ${shape.length} dimensions, the model wants ${spec.shape.length}` };
  }
  const at = spec.shape.findIndex((size, index) => size >= 0 && size !== shape[index]);
  if (at >= 0) {
    return { fault: `${spec.name}: dimension ${at + 1} is ${shape[at]}, the model wants ${spec.shape[at]}` };
  }
  return { value: shape };
}

/** The elements as words of JSON: numbers with spaces, commas or brackets between them; texts one a line. */
export function readValues(text: string, spec: TensorSpec): Read<string[]> {
  if (spec.datatype === "BYTES") return readTexts(text, spec);
  const words = text.replace(/[[\]]/g, " ").split(/[\s,;]+/).filter(Boolean);
  const made: string[] = [];
  for (const [index, word] of words.entries()) {
    const element = readElement(word, spec.datatype);
    if (element === undefined) return { fault: `${spec.name}: element ${index + 1}, "${word}", is no ${spec.datatype}` };
    made.push(element);
  }
  return { value: made };
}

/** A v2 request's body; the first fault where something does not fit. */
export function inferBody(specs: readonly TensorSpec[], typed: Readonly<Record<string, Typed>>): Read<string> {
  const inputs: string[] = [];
  for (const spec of specs) {
    const given = typed[spec.name];
    if (!given || (spec.is_optional && !given.values.trim())) continue;
    const shape = readShape(given.shape, spec);
    if ("fault" in shape) return shape;
    const values = readValues(given.values, spec);
    if ("fault" in values) return values;
    const wanted = elements(shape.value);
    if (values.value.length !== wanted) {
      return {
        fault: `${spec.name}: ${values.value.length} elements, but the shape ${shape.value.join(" × ")} has ${wanted}`,
      };
    }
    inputs.push(
      `{"name": ${JSON.stringify(spec.name)}, "shape": [${shape.value.join(", ")}], ` +
        `"datatype": ${JSON.stringify(spec.datatype)}, "data": [${values.value.join(", ")}]}`,
    );
  }
  return { value: `{"inputs": [${inputs.join(", ")}]}` };
}

/** Elements of the kind to fill a tensor with: zeros, or numbers at random, which `chance` (0 to 1) gives. */
export function filled(datatype: string, length: number, chance?: () => number): string {
  const element = (): string => {
    if (datatype === "BYTES") return "text";
    const drawn = chance?.() ?? 0;
    if (datatype === "BOOL") return drawn >= 0.5 ? "true" : "false";
    return datatype.includes("INT") ? String(Math.floor(drawn * 10)) : String(Math.round(drawn * 100) / 100);
  };
  return Array.from({ length }, element).join(datatype === "BYTES" ? "\n" : ", ");
}

/** The input that a drawing fills: one of 8 × 8, 28 × 28 or 32 × 32 numbers; the side, and in which order of magnitude. */
export function drawnInput(specs: readonly TensorSpec[]): { spec: TensorSpec; side: number; most: number } | null {
  const needed = specs.filter((spec) => !spec.is_optional);
  const spec = (needed.length ? needed : specs).find((one) => sideOf(one) > 0);
  if (needed.length > 1 || !spec) return null;
  return { spec, side: sideOf(spec), most: spec.datatype.includes("INT") ? 255 : 1 };
}

function sideOf(spec: TensorSpec): number {
  if (spec.datatype === "BYTES" || spec.datatype === "BOOL") return 0;
  const length = elements(firstShape(spec));
  const side = Math.sqrt(length);
  return SIDES.includes(side) ? side : 0;
}

function readElement(word: string, datatype: string): string | undefined {
  if (datatype === "BOOL") {
    const low = word.toLowerCase();
    return low === "true" || low === "1" ? "true" : low === "false" || low === "0" ? "false" : undefined;
  }
  if (datatype.includes("INT")) {
    if (!INTEGER.test(word) || (datatype.startsWith("U") && word.startsWith("-"))) return undefined;
    const sign = word.startsWith("-") ? "-" : "";
    return sign + (word.replace(/^[+-]/, "").replace(/^0+(?=\d)/, ""));
  }
  if (!FLOAT.test(word)) return undefined;
  const plain = word.replace(/^\+/, "").replace(/^(-?)\./, "$10.").replace(/\.(?=$|[eE])/, "");
  return plain.replace(/^(-?)0+(?=\d)/, "$1");
}

function readTexts(text: string, spec: TensorSpec): Read<string[]> {
  if (text.trimStart().startsWith("[")) {
    try {
      const given: unknown = JSON.parse(text);
      const flat = (given as unknown[]).flat(Infinity);
      if (flat.every((one) => typeof one === "string")) return { value: flat.map((one) => JSON.stringify(one)) };
      return { fault: `${spec.name}: every element of the list must be a text` };
    } catch {
      // A text may begin with a bracket.
    }
  }
  return { value: text.split("\n").map((line) => JSON.stringify(line)) };
}
