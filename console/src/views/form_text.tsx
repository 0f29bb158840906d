// One text, where the model takes one.

import { useEffect, useState } from "preact/hooks";
import { bodyRequest, firstText, v2Request, withText } from "../asking";
import { elements, firstShape, inferBody, type TensorSpec } from "../tensors";
import type { FormProps } from "./try_it";

export function TextForm({ model, change }: FormProps) {
  const way = model.try_it;
  const [text, setText] = useState(() => firstText(way.example) || "Hello");
  useEffect(() => change(request()), [text]);
  const request = () => {
    const isJson = way.content_type.includes("json");
    if (way.path.endsWith("/infer") && model.inputs.length === 1) {
      const spec = model.inputs[0] as TensorSpec;
      const shape = firstShape(spec);
      const values = JSON.stringify(new Array(elements(shape)).fill(text));
      const body = inferBody(model.inputs, { [spec.name]: { shape: shape.join(), values } });
      if ("value" in body) return v2Request(model.name, body.value);
    }
    const made = isJson ? JSON.stringify(withText(way.example ?? "text", text)) : text;
    return bodyRequest(way, made, way.content_type || "text/plain");
  };
  return (
    <label>
      <span>Text</span>
      <textarea class="prose" rows={5} value={text} onInput={(event) => setText(event.currentTarget.value)} />
    </label>
  );
}
