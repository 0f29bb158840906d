// An answer in the ways that it can be seen: bars, a picture, a text, and always as it came.

import { useEffect, useState } from "preact/hooks";
import { type Bars, bars, pretty, texts } from "../answers";
import { bytes, duration, figure, percent } from "../format";
import type { Answer } from "../sending";
import { Copy } from "./parts";

export function AnswerView({ answer, isBusy }: { answer: Answer | null; isBusy: boolean }) {
  return (
    <section class="answer" aria-label="Answer" aria-busy={isBusy}>
      <div role="status">{answer ? <Line answer={answer} /> : <p class="waits">The answer will stand here.</p>}</div>
      {answer && <Views answer={answer} />}
    </section>
  );
}

function Line({ answer }: { answer: Answer }) {
  if (answer.fault) return <p class="refusal">{answer.fault}</p>;
  const [first] = answer.status < 400 ? bars(parsed(answer)) : [];
  const best = first?.is_share ? first.bars[0] : undefined;
  return (
    <>
      {best && (
        <p class="best">
          <b>{best.label}</b> <span>{percent(best.value)}</span>
        </p>
      )}
      <p class="measured">
        <span class={answer.status < 400 ? "state good" : "state bad"}>{answer.status}</span> {duration(answer.seconds)},{" "}
        {bytes(answer.size)}
      </p>
    </>
  );
}

function Views({ answer }: { answer: Answer }) {
  const value = parsed(answer);
  const isFine = answer.status < 400;
  const rows = isFine ? bars(value) : [];
  const said = isFine ? texts(value) : [];
  const isJson = value !== undefined;
  const raw = isJson ? pretty(answer.text) : answer.text;
  const isLong = rows.length > 0 || said.length > 0;
  return (
    <>
      {answer.picture && <Picture blob={answer.picture} />}
      {rows.map((row, index) => (
        <BarRows key={index} row={row} />
      ))}
      {said.map((text, index) => (
        <blockquote key={index}>{text}</blockquote>
      ))}
      {raw && (
        <details open={!isLong}>
          <summary>{isJson ? "JSON" : "Text"}</summary>
          <div class="raw">
            <Copy text={raw} what="the answer" />
            <pre tabIndex={0} aria-label="The answer as it came">
              {raw}
            </pre>
          </div>
        </details>
      )}
    </>
  );
}

function BarRows({ row }: { row: Bars }) {
  const most = row.is_share ? 1 : Math.max(...row.bars.map((bar) => Math.abs(bar.value)), 1e-12);
  return (
    <table class="bars">
      {row.title && <caption>{row.title}</caption>}
      <tbody>
        {row.bars.map((bar, index) => (
          <tr key={index}>
            <th scope="row">{bar.label}</th>
            <td class="bar">
              <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                <rect class="track" width="100" height="8" />
                <rect class={bar.value < 0 ? "less" : "more"} width={(Math.abs(bar.value) / most) * 100} height="8" />
              </svg>
            </td>
            <td class="number">{row.is_share ? percent(bar.value) : figure(bar.value)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Picture({ blob }: { blob: Blob }) {
  const [address, setAddress] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(blob);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return address ? <img class="picture" src={address} alt="The picture that the model answered" /> : null;
}

function parsed(answer: Answer): unknown {
  try {
    return JSON.parse(answer.text);
  } catch {
    return undefined;
  }
}
