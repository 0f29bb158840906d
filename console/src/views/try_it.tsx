// A request by the model's signature, through the same routes as any client; its answer; the same request to copy.

import { useEffect, useState } from "preact/hooks";
import type { Kind, Model, Row } from "../api";
import { waysToAsk } from "../asking";
import { type Answer, send } from "../sending";
import type { Prepared } from "../snippets";
import { AnswerView } from "./answer";
import { BodyForm } from "./form_body";
import { ChatForm } from "./form_chat";
import { DigitForm } from "./form_digit";
import { PictureForm } from "./form_picture";
import { TensorsForm } from "./form_tensors";
import { TextForm } from "./form_text";
import { Snippets } from "./snippet_view";

const NAMES: Record<Kind, string> = {
  digit: "Draw",
  tensors: "Tensors",
  text: "Text",
  picture: "Picture",
  body: "Body",
  chat: "Chat",
};

/** What every form is given: `change` says what would be sent now, or why nothing can be. */
export interface FormProps {
  model: Model;
  change: (request: Prepared | null, fault?: string) => void;
  submit: () => void;
}

const FORMS = { digit: DigitForm, tensors: TensorsForm, text: TextForm, picture: PictureForm, body: BodyForm };

export function TryItPart({ model, row }: { model: Model; row: Row }) {
  const kinds = waysToAsk(model.try_it.kinds, model.inputs, model.outputs).filter((kind) => kind in NAMES);
  const [chosen, setKind] = useState<Kind | null>(null);
  const kind = chosen && kinds.includes(chosen) ? chosen : kinds[0];
  if (!kind) return <p class="waits">This model takes nothing that could be typed here.</p>;
  return (
    <>
      {row.state !== "ready" && (
        <p class="note">The model is {row.state}: a request will be refused until it is ready.</p>
      )}
      {kinds.length > 1 && (
        <fieldset class="kinds">
          <legend>Send</legend>
          {kinds.map((one) => (
            <label key={one}>
              <input type="radio" name="kind" checked={one === kind} onChange={() => setKind(one)} />
              <span>{NAMES[one]}</span>
            </label>
          ))}
        </fieldset>
      )}
      {kind === "chat" ? <ChatForm model={model} /> : <Once key={kind} kind={kind} model={model} />}
    </>
  );
}

/** One request and one answer. */
function Once({ kind, model }: { kind: Exclude<Kind, "chat">; model: Model }) {
  const [request, setRequest] = useState<Prepared | null>(null);
  const [fault, setFault] = useState("");
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [asked, setAsked] = useState(0);
  const change = (made: Prepared | null, why = "") => {
    setRequest(made);
    setFault(why);
  };
  useEffect(() => {
    if (!asked || !request) return;
    let isOver = false;
    setBusy(true);
    void send(request).then((came) => {
      if (isOver) return;
      setAnswer(came);
      setBusy(false);
    });
    return () => {
      isOver = true;
      setBusy(false);
    };
  }, [asked]);
  const Form = FORMS[kind];
  const submit = () => setAsked((before) => before + 1);
  return (
    <form
      class="try"
      onSubmit={(event) => {
        event.preventDefault();
        if (request) submit();
      }}
    >
      <div class="ask">
        <Form model={model} change={change} submit={submit} />
        <p class="fault" role="status">
          {fault}
        </p>
        <button class="main" type="submit" aria-disabled={!request || isBusy}>
          {isBusy ? "Sending …" : "Send"}
        </button>
      </div>
      <AnswerView answer={answer} isBusy={isBusy} />
      {request && <Snippets request={request} />}
    </form>
  );
}
