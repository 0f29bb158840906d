// Small parts that several pages show.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Finding, Refusal } from "../api";

const TONES: Record<string, string> = {
  ready: "good",
  busy: "good",
  failed: "bad",
  lost: "bad",
  unavailable: "bad",
  loading: "busy",
  starting: "busy",
  unloading: "busy",
};

/** The first line of a reason, and what stands below it, such as a traceback. */
export function headed(reason: string): [string, string] {
  const [first = "", ...rest] = reason.trim().split("\n");
  return [first, rest.join("\n")];
}

/** A state as a word with a mark; never by colour alone. */
export function State({ state }: { state: string }) {
  return <span class={`state ${TONES[state] ?? "rest"}`}>{state}</span>;
}

/** Something wrong, and what to do about it. */
export function Trouble({ title, mend, isShort }: { title: string; mend?: string | null; isShort?: boolean }) {
  const [first, rest] = headed(title);
  return (
    <section class="trouble">
      <h2>{first}</h2>
      {rest && !isShort && <pre tabIndex={0}>{rest}</pre>}
      {mend && (
        <p class="mend">
          <strong>What to do:</strong> {mend}
        </p>
      )}
    </section>
  );
}

export function Findings({ findings }: { findings: Finding[] }) {
  return (
    <ul class="findings">
      {findings.map((finding, index) => (
        <li key={index} class={finding.severity}>
          <span class="severity">{finding.severity}</span>
          <div>
            <p>{finding.text}</p>
            {finding.where && <p class="where">{finding.where}</p>}
            {finding.mend && <p class="mend">{finding.mend}</p>}
          </div>
        </li>
      ))}
    </ul>
  );
}

export function Figure({ name, children, note }: { name: string; children: ComponentChildren; note?: string }) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>
        {children}
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}

/** A table that may be wider than the screen; then it is moved by itself, with the keyboard too. */
export function Wide({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="wide" role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

/** A button of a change: says that it is at work, and what was refused. */
export function Action({ name, act, isMain }: { name: string; act: () => Promise<void>; isMain?: boolean }) {
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState("");
  const press = async () => {
    setBusy(true);
    setRefusal("");
    try {
      await act();
    } catch (error) {
      setRefusal(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  return (
    <span class="action">
      <button type="button" class={isMain ? "main" : ""} aria-disabled={isBusy} onClick={() => isBusy || void press()}>
        {isBusy ? `${name} …` : name}
      </button>
      <span class="refusal" role="alert">
        {refusal}
      </span>
    </span>
  );
}

/** Copies a text. Beyond loopback and without TLS a browser has no clipboard, but the older way. */
export function Copy({ text, what }: { text: string; what: string }) {
  const [done, setDone] = useState("");
  useEffect(() => setDone(""), [text]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone("Copied");
    } catch {
      setDone(copiedBySelection(text) ? "Copied" : "Not copied: the browser forbids it");
    }
  };
  return (
    <button class="quiet copy" type="button" onClick={() => void copy()} aria-label={`Copy ${what}`}>
      <span aria-live="polite">{done || "Copy"}</span>
    </button>
  );
}

function copiedBySelection(text: string): boolean {
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.className = "unseen";
  field.value = text;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return isCopied;
}

/** What an address answers, asked again when `key` changes and every `seconds` while the page is seen. */
export function useAnswer<T>(ask: () => Promise<T>, key: string, seconds = 0): { answer: T | null; refusal: Refusal | null } {
  const [known, setKnown] = useState<{ answer: T | null; refusal: Refusal | null }>({ answer: null, refusal: null });
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    let isOver = false;
    const turn = async () => {
      try {
        const answer = await latest.current();
        if (!isOver) setKnown({ answer, refusal: null });
      } catch (error) {
        const refusal = error instanceof Refusal ? error : new Refusal(0, String(error));
        if (!isOver) setKnown((before) => ({ ...before, refusal }));
      }
    };
    void turn();
    const timer = seconds ? setInterval(() => document.hidden || void turn(), seconds * 1000) : 0;
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [key, seconds]);
  return known;
}
