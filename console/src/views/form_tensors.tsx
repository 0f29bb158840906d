// A tensor is a shape and its elements.

import { useEffect, useState } from "preact/hooks";
import { tensor } from "../format";
import { elements, filled, firstShape, inferBody, readShape, type TensorSpec, type Typed } from "../tensors";
import { v2Request } from "../asking";
import type { FormProps } from "./try_it";

const MOST_FILLED = 4096;

export function TensorsForm({ model, change }: FormProps) {
  const [typed, setTyped] = useState(() => beginning(model.inputs, model.try_it.example));
  useEffect(() => {
    const body = inferBody(model.inputs, typed);
    if ("fault" in body) change(null, body.fault);
    else change(v2Request(model.name, body.value));
  }, [typed]);
  return (
    <>
      {model.inputs.map((spec) => (
        <TensorField
          key={spec.name}
          spec={spec}
          typed={typed[spec.name] ?? { shape: "", values: "" }}
          set={(part) => setTyped((before) => ({ ...before, [spec.name]: { shape: "", values: "", ...before[spec.name], ...part } }))}
        />
      ))}
    </>
  );
}

function TensorField({ spec, typed, set }: { spec: TensorSpec; typed: Typed; set: (part: Partial<Typed>) => void }) {
  const shape = readShape(typed.shape, spec);
  const length = "value" in shape ? elements(shape.value) : 0;
  const fill = (chance?: () => number) => set({ values: filled(spec.datatype, length, chance) });
  const isFillable = length > 0 && length <= MOST_FILLED;
  return (
    <fieldset class="tensor">
      <legend>
        {spec.name} <code>{tensor(spec.datatype, spec.shape)}</code>
        {spec.is_optional ? " optional" : ""}
      </legend>
      <label class="shape">
        <span>Shape</span>
        <input value={typed.shape} onInput={(event) => set({ shape: event.currentTarget.value })} spellcheck={false} />
      </label>
      <label>
        <span>{spec.datatype === "BYTES" ? "Texts, one a line" : "Numbers"}</span>
        <textarea
          rows={4}
          value={typed.values}
          onInput={(event) => set({ values: event.currentTarget.value })}
          spellcheck={false}
        />
      </label>
      {spec.datatype !== "BYTES" && (
        <div class="row">
          <button class="quiet" type="button" aria-disabled={!isFillable} onClick={() => isFillable && fill()}>
            Zeros
          </button>
          <button class="quiet" type="button" aria-disabled={!isFillable} onClick={() => isFillable && fill(Math.random)}>
            Random
          </button>
        </div>
      )}
    </fieldset>
  );
}

/** The example of the server where it has one, else zeros. */
function beginning(specs: TensorSpec[], example: unknown): Record<string, Typed> {
  const given = (example as { inputs?: { name: string; shape: number[]; data: unknown[] }[] } | null)?.inputs ?? [];
  return Object.fromEntries(
    specs.map((spec) => {
      const one = Array.isArray(given) ? given.find((input) => input.name === spec.name) : undefined;
      const shape = one?.shape ?? firstShape(spec);
      const length = elements(shape);
      const values = one?.data ? one.data.flat(Infinity).join(spec.datatype === "BYTES" ? "\n" : ", ") : "";
      const zeros = !spec.is_optional && length <= MOST_FILLED ? filled(spec.datatype, length) : "";
      return [spec.name, { shape: shape.join(", "), values: values || zeros }];
    }),
  );
}
