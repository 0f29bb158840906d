// The requests that the forms make. Pure.

import type { Prepared } from "./snippets";
import type { Kind, TryIt } from "./api";
import { drawnInput, type TensorSpec } from "./tensors";

const JSON_TYPE: [string, string] = ["Content-Type", "application/json"];

export function v2Request(model: string, body: string): Prepared {
  return { method: "POST", path: inferPath(model), headers: [JSON_TYPE], body: { text: body } };
}

/** Where a free body goes: tensors by v2, all else to the route that the server names. */
export function bodyWay(model: string, way: TryIt): TryIt {
  return way.kinds.includes("tensors") ? { ...way, method: "POST", path: inferPath(model), content_type: JSON_TYPE[1] } : way;
}

/** A body as the model's own route takes it. */
export function bodyRequest(way: TryIt, text: string, contentType: string): Prepared {
  const headers: [string, string][] = contentType ? [["Content-Type", contentType]] : [];
  return { method: way.method, path: way.path, headers, body: { text } };
}

export function fileRequest(way: TryIt, file: Blob, name: string): Prepared {
  const type = file.type || "application/octet-stream";
  return { method: way.method, path: way.path, headers: [["Content-Type", type]], body: { file, name } };
}

const CLASSES = 10;

/** The ways to ask a model, best first: the server's, a drawing where ten classes are told apart by the pixels of a
 * small picture or a picture is taken, and a free body for whatever else somebody wants to send. */
export function waysToAsk(kinds: Kind[], inputs: TensorSpec[], outputs: { shape: number[] }[]): Kind[] {
  const isDigits = !kinds.includes("picture") && drawnInput(inputs) !== null && outputs.some((one) => one.shape.at(-1) === CLASSES);
  const others = kinds.filter((kind) => kind !== "digit" || drawnInput(inputs) !== null);
  const ways = [...(isDigits ? (["digit"] as const) : []), ...others];
  if (kinds.includes("picture")) ways.push("digit");
  ways.push("body");
  return [...new Set(ways)];
}

export interface Message {
  role: "user" | "assistant" | "system";
  content: string;
}

export function chatRequest(model: string, messages: Message[], settings: { max_tokens: number; temperature: number }): Prepared {
  const body = JSON.stringify({ model, messages, ...settings, stream: true });
  return { method: "POST", path: "/v1/chat/completions", headers: [JSON_TYPE], body: { text: body }, is_streamed: true };
}

function inferPath(model: string): string {
  return `/v2/models/${encodeURIComponent(model)}/infer`;
}

/** The first text somewhere in an example, which a form of one text edits. */
export function firstText(example: unknown): string {
  if (typeof example === "string") return example;
  if (typeof example !== "object" || example === null) return "";
  for (const value of Object.values(example)) {
    const found = firstText(value);
    if (found) return found;
  }
  return "";
}

/** The example with its first text replaced; the others stay. */
export function withText(example: unknown, text: string): unknown {
  const state = { isDone: false };
  const visit = (value: unknown): unknown => {
    if (state.isDone) return value;
    if (typeof value === "string" && value) {
      state.isDone = true;
      return text;
    }
    if (Array.isArray(value)) return value.map(visit);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, visit(one)]));
  };
  return visit(example);
}

/** A request's body out of an example: a text as it is, anything else as JSON. */
export function bodyText(example: unknown): string {
  return typeof example === "string" ? example : example === null || example === undefined ? "" : JSON.stringify(example, null, 1).replace(/\n\s*/g, " ");
}
