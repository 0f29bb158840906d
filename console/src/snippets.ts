// One request in three languages, to be copied. Pure. Nothing is sent from here.

export type Body = { text: string } | { file: Blob; name: string };

/** A request as it leaves this page, and as somebody else can send it. */
export interface Prepared {
  method: string;
  path: string;
  headers: [string, string][];
  body: Body | null;
  is_streamed?: boolean;
}

export type Language = "curl" | "Python" | "JavaScript";

export function snippet(language: Language, request: Prepared, origin: string): string {
  return { curl, Python: python, JavaScript: javascript }[language](request, origin + request.path);
}

/** The same request for a client that has no cookie of this page: a key stands in its place. */
export function withKey(request: Prepared): Prepared {
  return { ...request, headers: [...request.headers, ["Authorization", "Bearer YOUR_KEY"]] };
}

function curl({ method, headers, body, is_streamed }: Prepared, url: string): string {
  const words = ["curl", is_streamed ? "-sN" : "-s"];
  if (method !== (body ? "POST" : "GET")) words.push("-X", method);
  const lines = [`${words.join(" ")} ${quoted(url)}`];
  for (const [name, value] of headers) lines.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (body) lines.push("text" in body ? `--data-raw ${quoted(body.text)}` : `--data-binary ${quoted(`@${body.name}`)}`);
  return lines.join(" \\\n  ");
}

function python({ method, headers, body, is_streamed }: Prepared, url: string): string {
  const lines = ["from urllib.request import Request, urlopen", "", "request = Request(", `    ${text(url)},`];
  if (body && "text" in body) lines.push(`    data=${text(body.text)}.encode(),`);
  else if (body) lines.push(`    data=open(${text(body.name)}, "rb").read(),`);
  if (headers.length) {
    lines.push(`    headers={${headers.map(([name, value]) => `${text(name)}: ${text(value)}`).join(", ")}},`);
  }
  lines.push(`    method=${text(method)},`, ")", "with urlopen(request) as answer:");
  if (is_streamed) lines.push("    for line in answer:", "        print(line.decode(), end=\"\")");
  else lines.push("    print(answer.read().decode())");
  return lines.join("\n");
}

function javascript({ method, headers, body, is_streamed }: Prepared, url: string): string {
  const isFile = body !== null && "file" in body;
  const lines = isFile ? ['import { readFile } from "node:fs/promises";', ""] : [];
  lines.push(`const answer = await fetch(${text(url)}, {`, `  method: ${text(method)},`);
  if (headers.length) {
    lines.push(`  headers: {${headers.map(([name, value]) => `${text(name)}: ${text(value)}`).join(", ")}},`);
  }
  if (isFile) lines.push(`  body: await readFile(${text(body.name)}),`);
  else if (body) lines.push(`  body: ${text(body.text)},`);
  lines.push("});");
  if (is_streamed) {
    lines.push("const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();");
    lines.push("for (let part; !(part = await reader.read()).done; ) console.log(part.value);");
  } else lines.push("console.log(answer.status, await answer.text());");
  return lines.join("\n");
}

/** A word of a POSIX shell that is exactly this text. */
function quoted(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}

/** A literal of Python and of JavaScript alike: JSON's, without half a surrogate pair, which Python would not encode. */
function text(value: string): string {
  return JSON.stringify(value.toWellFormed?.() ?? value).replace(/[\u007f\u2028\u2029]/g, escaped);
}

function escaped(letter: string): string {
  return `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
