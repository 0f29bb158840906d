// What an answer can be shown as. Pure: no model is known by name, only the forms that servers answer in.

export interface Bar {
  label: string;
  value: number;
}

export interface Bars {
  title: string;
  bars: Bar[];
  is_share: boolean;
}

type Values = Record<string, unknown>;

const MOST_BARS = 10;
const LONG_INTEGER = /(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/;
const LABELS = ["className", "class_name", "label", "name"];
const SCORES = ["probability", "score", "confidence", "value"];

/** Rows of numbers that somebody would rather see than read; none where the answer has no such thing. */
export function bars(answer: unknown): Bars[] {
  if (isValues(answer) && Array.isArray(answer.outputs)) return answer.outputs.flatMap(ofTensor);
  const one = single(answer);
  const found = ofLabels(one) ?? ofNamed(one) ?? ofNumbers(one);
  return found ? [greatestFirst("", found)] : [];
}

/** Texts that a model wrote: of a BYTES tensor, or under the names that generating routes use. */
export function texts(answer: unknown): string[] {
  if (typeof answer === "string") return [answer];
  if (Array.isArray(answer)) return answer.length === 1 ? texts(answer[0]) : [];
  if (!isValues(answer)) return [];
  for (const key of ["generated_text", "text_output", "text"]) {
    const value = answer[key];
    if (typeof value === "string") return [value];
  }
  const parts = Array.isArray(answer.choices) ? answer.choices : Array.isArray(answer.outputs) ? answer.outputs : [];
  return parts.filter(isValues).flatMap((part) => {
    if (typeof part.text === "string") return [part.text];
    if (isValues(part.message) && typeof part.message.content === "string") return [part.message.content];
    if (part.datatype !== "BYTES" || !Array.isArray(part.data)) return [];
    return part.data.filter((one): one is string => typeof one === "string");
  });
}

/** JSON with two spaces, lists of plain values on one line; anything else as it is. */
export function pretty(text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text;
  }
  const made = JSON.stringify(value, null, 2);
  // What JavaScript cannot hold exactly is shown as it came.
  return LONG_INTEGER.test(text) ? text : made.replace(/\[[^[\]{}"]*\]/g, (list) => list.replace(/\s+/g, " "));
}

function ofTensor(output: unknown): Bars[] {
  if (!isValues(output) || !Array.isArray(output.data) || !Array.isArray(output.shape)) return [];
  const width = Number(output.shape.at(-1));
  const data: unknown[] = output.data.flat(Infinity);
  if (!(width >= 2) || width > 10_000 || data.length % width || !data.every(isNumber)) return [];
  const rows = Math.min(4, data.length / width);
  return Array.from({ length: rows }, (_, row) => {
    const values = (data as number[]).slice(row * width, (row + 1) * width);
    const title = String(output.name ?? "") + (data.length > width ? `, row ${row + 1}` : "");
    return greatestFirst(title, values.map((value, index) => ({ label: String(index), value })));
  });
}

/** {"cat": 0.9, "dog": 0.1} */
function ofLabels(answer: unknown): Bar[] | null {
  if (!isValues(answer)) return null;
  const entries = Object.entries(answer);
  if (entries.length < 2 || !entries.every(([, value]) => isNumber(value))) return null;
  return entries.map(([label, value]) => ({ label, value: value as number }));
}

/** [{"className": "cat", "probability": 0.9}, ...] */
function ofNamed(answer: unknown): Bar[] | null {
  if (!Array.isArray(answer) || !answer.length || !answer.every(isValues)) return null;
  const first = answer[0] as Values;
  const label = LABELS.find((key) => typeof first[key] === "string" || typeof first[key] === "number");
  const score = SCORES.find((key) => isNumber(first[key]));
  if (!label || !score) return null;
  return (answer as Values[]).map((one) => ({ label: String(one[label]), value: Number(one[score]) }));
}

/** [0.1, 0.9] */
function ofNumbers(answer: unknown): Bar[] | null {
  if (!Array.isArray(answer) || answer.length < 2 || answer.length > 10_000 || !answer.every(isNumber)) return null;
  return answer.map((value: number, index) => ({ label: String(index), value }));
}

/** A list of one list is that list. */
function single(answer: unknown): unknown {
  return Array.isArray(answer) && answer.length === 1 && (Array.isArray(answer[0]) || ofLabels(answer[0]))
    ? single(answer[0])
    : answer;
}

function greatestFirst(title: string, found: Bar[]): Bars {
  const sum = found.reduce((total, bar) => total + bar.value, 0);
  const isShare = found.every((bar) => bar.value >= 0 && bar.value <= 1) && sum <= 1.01;
  const sorted = [...found].sort((one, other) => other.value - one.value);
  return { title, bars: sorted.slice(0, MOST_BARS), is_share: isShare };
}

function isValues(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}
