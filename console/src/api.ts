// What /api/v1 answers, and how it is asked. Times are Unix seconds, durations seconds, sizes bytes.

import { ROOT } from "./root";
import type { TensorSpec } from "./tensors";

export interface Row {
  name: string;
  version: string;
  state: string;
  reason: string | null;
  engine: string | null;
  requests: number;
  failures: number;
  requests_per_s: number;
  p50_s: number | null;
  p99_s: number | null;
  waiting: number;
  running: number;
  instances: { ready: number; starting: number; failed: number };
  history: number[];
}

export interface Overview {
  server: {
    name: string;
    version: string;
    profile: string;
    started: number;
    ready: boolean;
    sentence: string | null;
    mend: string | null;
    signed_in?: boolean;
  };
  totals: { requests: number; failures: number; waiting: number; connections: number };
  models: Row[];
}

export type Kind = "tensors" | "text" | "picture" | "digit" | "body" | "chat";

export interface TryIt {
  kinds: Kind[];
  method: string;
  path: string;
  content_type: string;
  example: unknown;
}

export interface Finding {
  severity: string;
  text: string;
  where: string | null;
  mend: string | null;
}

export interface Version {
  version: string;
  state: string;
  reason: string | null;
}

export interface Model extends Row {
  versions: Version[];
  origin: string;
  inputs: TensorSpec[];
  outputs: TensorSpec[];
  try_it: TryIt;
  configuration: Setting[];
  findings: Finding[];
}

export interface Setting {
  key?: string;
  name?: string;
  value: unknown;
  where: string | null;
}

export interface Death {
  when: number;
  cause: string;
  last_lines: string[];
}

export interface Instance {
  name: string;
  version: string;
  device: string;
  state: string;
  pid: number | null;
  resident_bytes: number | null;
  deaths: Death[];
}

export interface LogLine {
  when: number;
  instance: string;
  text: string;
}

export interface Timeline {
  id: string;
  model: string;
  version: string;
  received: number;
  queue_s: number;
  batch_size: number;
  compute_s: number;
  total_s: number;
  status: number | string;
  error: string | null;
}

export interface Requests {
  since?: number | null;
  slowest: Timeline[];
  failed: Timeline[];
  sample: Timeline[];
}

export interface Settings {
  settings: Setting[];
  listeners: { name: string; address: string }[];
  log_level: string;
  memory: Record<string, unknown>;
  connections: number;
}

/** What the server says when it refuses; `status` is HTTP's, 0 where nobody answered. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const BASE = `${ROOT}/api/v1`;

export const modelPath = (name: string): string => `/models/${encodeURIComponent(name)}`;

export async function read<T>(path: string): Promise<T> {
  return (await asked(path, {})).json() as Promise<T>;
}

/** A change: its header is what another site's page cannot send. */
export async function change(path: string, body?: unknown, method = "POST"): Promise<void> {
  const headers: Record<string, string> = { "Trivium-Console": "1" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  await asked(path, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
}

async function asked(path: string, init: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(BASE + path, init);
  } catch {
    throw new Refusal(0, "The server does not answer.");
  }
  if (!answer.ok) throw new Refusal(answer.status, said(await answer.text(), answer.status));
  return answer;
}

function said(body: string, status: number): string {
  try {
    const { error } = JSON.parse(body) as { error?: unknown };
    if (typeof error === "string") return error;
  } catch {
    // Not JSON: said as it is below.
  }
  return body.slice(0, 500) || `The server refuses with ${status}.`;
}
