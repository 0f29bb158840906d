// A conversation with a language model, word by word as it comes.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Model } from "../api";
import { chatRequest, type Message } from "../asking";
import { chatText, EventReader } from "../event_stream";
import { duration } from "../format";
import { init } from "../sending";
import type { Prepared } from "../snippets";
import { Snippets } from "./snippet_view";

interface Measured {
  status: number;
  first_s: number | null;
  total_s: number;
  pieces: number;
}

export function ChatForm({ model }: { model: Model }) {
  const [messages, setMessages] = useState<Message[]>([]);
  const [text, setText] = useState("What is the capital of France?");
  const [most, setMost] = useState(128);
  const [temperature, setTemperature] = useState(0);
  const [fault, setFault] = useState("");
  const [measured, setMeasured] = useState<Measured | null>(null);
  const [running, setRunning] = useState<AbortController | null>(null);
  const [sent, setSent] = useState<Prepared | null>(null);
  const settings = { max_tokens: most, temperature };
  const next = (): Message[] => [...messages, { role: "user", content: text }];
  useEffect(() => () => running?.abort(), [running]);
  const ask = async () => {
    if (running || !text.trim()) return;
    const asked = next();
    const request = chatRequest(model.name, asked, settings);
    const stop = new AbortController();
    setSent(request);
    setRunning(stop);
    setFault("");
    setText("");
    setMessages([...asked, { role: "assistant", content: "" }]);
    try {
      await streamed(request, stop.signal, setMeasured, (piece) => setMessages((before) => lengthened(before, piece)));
    } catch (error) {
      if (!stop.signal.aborted) setFault(error instanceof Error ? error.message : String(error));
    }
    setRunning(null);
  };
  return (
    <form
      class="chat"
      onSubmit={(event) => {
        event.preventDefault();
        void ask();
      }}
    >
      <Conversation messages={messages} isRunning={running !== null} />
      <p class="fault" role="alert">
        {fault}
      </p>
      <label>
        <span>Message</span>
        <textarea
          class="prose"
          rows={2}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            void ask();
          }}
        />
      </label>
      <div class="row">
        <NumberField name="Tokens at most" value={most} set={setMost} min={1} max={100_000} step={1} />
        <NumberField name="Temperature" value={temperature} set={setTemperature} min={0} max={2} step={0.1} />
        {running ? (
          <button type="button" onClick={() => running.abort()}>
            Stop
          </button>
        ) : (
          <button class="main" type="submit" aria-disabled={!text.trim()}>
            Send
          </button>
        )}
        {messages.length > 0 && !running && (
          <button class="quiet" type="button" onClick={() => setMessages([])}>
            New conversation
          </button>
        )}
      </div>
      <p class="measured" role="status">
        {measured && !running && said(measured)}
      </p>
      <Snippets request={sent && !text ? sent : chatRequest(model.name, next(), settings)} />
    </form>
  );
}

function Conversation({ messages, isRunning }: { messages: Message[]; isRunning: boolean }) {
  const place = useRef<HTMLOListElement>(null);
  useEffect(() => place.current?.scrollTo({ top: place.current.scrollHeight }));
  if (!messages.length) return null;
  return (
    <ol class="messages" ref={place} tabIndex={0} aria-label="Conversation" aria-busy={isRunning} aria-live="polite">
      {messages.map((message, index) => (
        <li key={index} class={message.role}>
          <span class="who">{message.role === "user" ? "You" : "Model"}</span>
          <p>
            {message.content}
            {isRunning && index === messages.length - 1 && <span class="caret" aria-hidden="true" />}
          </p>
        </li>
      ))}
    </ol>
  );
}

interface NumberProps {
  name: string;
  value: number;
  set: (value: number) => void;
  min: number;
  max: number;
  step: number;
}

function NumberField({ name, value, set, min, max, step }: NumberProps) {
  return (
    <label class="small">
      <span>{name}</span>
      <input
        type="number"
        value={value}
        min={min}
        max={max}
        step={step}
        onInput={(event) => Number.isFinite(event.currentTarget.valueAsNumber) && set(event.currentTarget.valueAsNumber)}
      />
    </label>
  );
}

async function streamed(
  request: Prepared,
  signal: AbortSignal,
  measure: (measured: Measured) => void,
  add: (piece: string) => void,
): Promise<void> {
  const began = performance.now();
  const passed = () => (performance.now() - began) / 1000;
  const answer = await fetch(request.path, init(request, signal));
  const measured: Measured = { status: answer.status, first_s: null, total_s: 0, pieces: 0 };
  if (!answer.ok || !answer.body) throw new Error(refused(await answer.text(), answer.status));
  const events = new EventReader();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      for (const data of events.read(part.value)) {
        const piece = chatText(data);
        if (!piece) continue;
        measured.first_s ??= passed();
        measured.pieces++;
        add(piece);
      }
    }
  } finally {
    measure({ ...measured, total_s: passed() });
  }
}

function refused(body: string, status: number): string {
  try {
    const { error } = JSON.parse(body) as { error?: string | { message?: string } };
    const message = typeof error === "string" ? error : error?.message;
    if (message) return `${status}: ${message}`;
  } catch {
    // Not JSON: said as it is.
  }
  return `${status}: ${body.slice(0, 500)}`;
}

function lengthened(messages: Message[], piece: string): Message[] {
  const last = messages.at(-1);
  return last ? [...messages.slice(0, -1), { ...last, content: last.content + piece }] : messages;
}

function said({ status, first_s, total_s, pieces }: Measured): string {
  const each = first_s !== null && pieces > 1 ? `, ${((pieces - 1) / Math.max(total_s - first_s, 1e-6)).toFixed(1)} pieces a second` : "";
  return `Status ${status}, first words after ${duration(first_s)}, ${duration(total_s)} in all${each}`;
}
