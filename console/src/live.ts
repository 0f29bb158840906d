// The server as it is now: one stream of events for the whole page, which ends with it, and what the page remembers.

import { useEffect, useState } from "preact/hooks";
import { type Death, type LogLine, type Overview, read, Refusal } from "./api";

const MOST_MOMENTS = 300;
const MOST_LINES = 200;
const AGAIN_MS = 3000;

export interface Moment {
  when: number;
  p50_s: number | null;
  p99_s: number | null;
}

export interface News {
  key: number;
  model: string;
  text: string;
}

/** `link` is what the stream does; `refusal` why there is none. Who signed in only an answer of one's own says: what the
 * stream brings is the same for all. */
export interface Live {
  overview: Overview | null;
  isSignedIn: boolean;
  link: "opening" | "open" | "lost";
  refusal: Refusal | null;
  now: number;
  news: News | null;
  lines: ReadonlyMap<string, readonly LogLine[]>;
  deaths: number;
  moments: ReadonlyMap<string, readonly Moment[]>;
}

const lines = new Map<string, LogLine[]>();
const moments = new Map<string, Moment[]>();
const listeners = new Set<(live: Live) => void>();
let source: EventSource | null = null;
let live: Live = {
  overview: null,
  isSignedIn: false,
  link: "opening",
  refusal: null,
  now: Date.now() / 1000,
  news: null,
  lines,
  deaths: 0,
  moments,
};

/** What is known now; the component is drawn again when that changes. */
export function useLive(): Live {
  const [known, setKnown] = useState(live);
  useEffect(() => {
    listeners.add(setKnown);
    setKnown(live);
    return () => void listeners.delete(setKnown);
  }, []);
  return known;
}

/** Begin to listen; again after a sign-in. */
export async function listen(): Promise<void> {
  source?.close();
  try {
    const overview = await read<Overview>("/overview");
    told({ isSignedIn: overview.server.signed_in ?? false });
    taken(overview);
  } catch (error) {
    const refusal = error instanceof Refusal ? error : new Refusal(0, String(error));
    told({ link: "lost", refusal });
    if (refusal.status !== 401) setTimeout(() => void listen(), AGAIN_MS);
    return;
  }
  const stream = new EventSource("/api/v1/events");
  source = stream;
  stream.addEventListener("snapshot", (event) => taken(JSON.parse(event.data) as Overview));
  stream.addEventListener("death", (event) => died(JSON.parse(event.data) as Death & { model: string; instance: string }));
  stream.addEventListener("log", (event) => logged(JSON.parse(event.data) as LogLine & { model: string }));
  stream.addEventListener("end", () => void setTimeout(() => source === stream && void listen(), Math.random() * AGAIN_MS));
  stream.addEventListener("error", () => {
    // The browser tries by itself as long as it has not given up.
    told({ link: "lost" });
    if (stream.readyState === EventSource.CLOSED && source === stream) setTimeout(() => void listen(), AGAIN_MS);
  });
}

function taken(overview: Overview): void {
  const now = Date.now() / 1000;
  for (const row of overview.models) {
    const kept = moments.get(row.name) ?? [];
    kept.push({ when: now, p50_s: row.p50_s, p99_s: row.p99_s });
    if (kept.length > MOST_MOMENTS) kept.shift();
    moments.set(row.name, kept);
  }
  told({ overview, now, link: "open", refusal: null });
}

function died(death: Death & { model: string; instance: string }): void {
  const text = `${death.instance} of ${death.model} has ended: ${death.cause}`;
  told({ deaths: live.deaths + 1, news: { key: live.deaths + 1, model: death.model, text } });
}

function logged(line: LogLine & { model: string }): void {
  const kept = lines.get(line.model) ?? [];
  kept.push(line);
  if (kept.length > MOST_LINES) kept.shift();
  lines.set(line.model, kept);
}

function told(changed: Partial<Live>): void {
  live = { ...live, ...changed };
  for (const listener of listeners) listener(live);
}
