// A free body, typed or out of a file, for models that take whatever their code reads.

import { useEffect, useState } from "preact/hooks";
import { bodyRequest, bodyText, bodyWay, fileRequest } from "../asking";
import type { FormProps } from "./try_it";

export function BodyForm({ model, change }: FormProps) {
  const way = bodyWay(model.name, model.try_it);
  const [text, setText] = useState(() => bodyText(way.example));
  const [type, setType] = useState(way.content_type || "application/json");
  const [file, setFile] = useState<File | null>(null);
  useEffect(() => {
    const made = file ? fileRequest(way, new Blob([file], { type }), file.name) : bodyRequest(way, text, type);
    change(made, !file && type.includes("json") ? jsonFault(text) : "");
  }, [text, type, file]);
  return (
    <>
      <p class="where">
        {way.method} {way.path}
      </p>
      <label>
        <span>Content type</span>
        <input value={type} onInput={(event) => setType(event.currentTarget.value)} spellcheck={false} />
      </label>
      <label>
        <span>Body</span>
        <textarea
          rows={8}
          value={text}
          disabled={file !== null}
          onInput={(event) => setText(event.currentTarget.value)}
          spellcheck={false}
        />
      </label>
      <label>
        <span>or a file</span>
        <input type="file" onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)} />
      </label>
    </>
  );
}

/** Said, but sent all the same: a handler may take what is no JSON. */
function jsonFault(text: string): string {
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return `This is no JSON: ${error instanceof Error ? error.message : ""}`;
  }
}
