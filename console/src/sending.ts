// Sends a prepared request as any client would, and keeps what came: nothing of it is changed on the way.

import { ROOT } from "./root";
import type { Prepared } from "./snippets";

export interface Answer {
  status: number;
  seconds: number;
  size: number;
  content_type: string;
  text: string;
  picture: Blob | null;
  fault: string;
}

const MOST_SHOWN = 200_000;

export async function send(request: Prepared): Promise<Answer> {
  const began = performance.now();
  const none = { status: 0, size: 0, content_type: "", text: "", picture: null };
  try {
    const answer = await fetch(ROOT + request.path, init(request));
    const content = await answer.arrayBuffer();
    const seconds = (performance.now() - began) / 1000;
    const type = answer.headers.get("Content-Type") ?? "";
    const isPicture = type.startsWith("image/");
    return {
      status: answer.status,
      seconds,
      size: content.byteLength,
      content_type: type,
      text: isPicture ? "" : shortened(new TextDecoder().decode(content)),
      picture: isPicture ? new Blob([content], { type }) : null,
      fault: "",
    };
  } catch (error) {
    const fault = `No answer came: ${error instanceof Error ? error.message : String(error)}`;
    return { ...none, seconds: (performance.now() - began) / 1000, fault };
  }
}

export function init({ method, headers, body }: Prepared, signal?: AbortSignal): RequestInit {
  const content = body === null ? null : "text" in body ? body.text : body.file;
  // Without it a cookie is not taken for a key: another site's page can send cookies, but not this.
  const own: [string, string][] = [...headers, ["Trivium-Console", "1"]];
  return { method, headers: own, body: content, ...(signal ? { signal } : {}) };
}

function shortened(text: string): string {
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)} …` : text;
}
