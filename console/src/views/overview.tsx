// All models in one table, the sick ones first; how to add one where there is none.

import { useState } from "preact/hooks";
import type { Overview, Row } from "../api";
import { count, duration, NONE, rate } from "../format";
import { modelAddress } from "../route";
import { Copy, Figure, headed, State, Trouble } from "./parts";
import { Spark } from "./chart";

const MANY = 9;
const ORDER = ["failed", "unavailable", "loading", "unloading"];

export function OverviewPage({ overview }: { overview: Overview }) {
  const { server, totals, models } = overview;
  const [filter, setFilter] = useState("");
  const perSecond = models.reduce((sum, row) => sum + row.requests_per_s, 0);
  const shown = models.filter((row) => row.name.toLowerCase().includes(filter.toLowerCase()));
  if (!models.length) return <FirstModel sentence={server.sentence} mend={server.mend} />;
  return (
    <>
      <h1>Models</h1>
      {!server.ready && <Trouble title={server.sentence ?? "The server is not ready."} mend={server.mend} isShort />}
      <dl class="figures">
        <Figure name="Requests/s">{rate(perSecond)}</Figure>
        <Figure name="Requests">{count(totals.requests)}</Figure>
        <Figure name="Failed">{count(totals.failures)}</Figure>
        <Figure name="Waiting">{count(totals.waiting)}</Figure>
        <Figure name="Connections">{count(totals.connections)}</Figure>
      </dl>
      {models.length >= MANY && (
        <label class="filter">
          <span>Find a model</span>
          <input type="search" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        </label>
      )}
      <table class="models">
        <thead>
          <tr>
            <th scope="col">Model</th>
            <th scope="col">State</th>
            <th scope="col" class="number">Requests/s</th>
            <th scope="col" class="number">p50</th>
            <th scope="col" class="number">p99</th>
            <th scope="col" class="number">Waiting</th>
            <th scope="col" class="number">Instances</th>
            <th scope="col">Last minute</th>
          </tr>
        </thead>
        <tbody>
          {ordered(shown).map((row) => (
            <ModelRow key={`${row.name}:${row.version}`} row={row} />
          ))}
        </tbody>
      </table>
      {!shown.length && <p class="waits">No model has “{filter}” in its name.</p>}
    </>
  );
}

function ModelRow({ row }: { row: Row }) {
  return (
    <>
      <tr class={row.reason ? "has-reason" : ""}>
        <th scope="row">
          <a href={modelAddress(row.name)}>{row.name}</a>
          <small>
            version {row.version}
            {row.engine ? `, ${row.engine}` : ""}
          </small>
        </th>
        <td>
          <State state={row.state} />
        </td>
        <td class="number" data-label="Requests/s">{rate(row.requests_per_s)}</td>
        <td class="number" data-label="p50">{duration(row.p50_s)}</td>
        <td class="number" data-label="p99">{duration(row.p99_s)}</td>
        <td class="number" data-label="Waiting">{row.waiting}</td>
        <td class="number" data-label="Instances">{instances(row)}</td>
        <td class="spark-cell">
          <Spark values={row.history} />
        </td>
      </tr>
      {row.reason && (
        <tr class="reason">
          <td colSpan={8}>
            {headed(row.reason)[0]} <a href={modelAddress(row.name)}>What to do</a>
          </td>
        </tr>
      )}
    </>
  );
}

function instances({ instances: { ready, starting, failed } }: Row): string {
  const all = ready + starting + failed;
  return all === 0 ? NONE : ready === all ? String(ready) : `${ready} of ${all}`;
}

function ordered(rows: Row[]): Row[] {
  const place = (row: Row) => (ORDER.indexOf(row.state) + ORDER.length + 1) % (ORDER.length + 1);
  return [...rows].sort((one, other) => place(one) - place(other) || one.name.localeCompare(other.name, "en"));
}

function FirstModel({ sentence, mend }: { sentence: string | null; mend: string | null }) {
  const ways: [string, string, string][] = [
    ["A model file", "ONNX, TorchScript, XGBoost, scikit-learn and others need nothing beside them.", "trivium serve model.onnx"],
    ["A folder", "A Triton repository, a folder of DJL Serving, a Hugging Face model, an archive of TorchServe.", "trivium serve models/"],
    ["An example", "A trained classifier of handwritten digits, which you can draw for.", "trivium demo"],
  ];
  return (
    <>
      <h1>No model is served yet</h1>
      {sentence && <p class="lead">{sentence}</p>}
      {mend && <p class="lead">{mend}</p>}
      <p class="lead">Start the server with one; what is wrong with it, if anything, stands here then.</p>
      <ul class="ways">
        {ways.map(([title, text, command]) => (
          <li key={title}>
            <h2>{title}</h2>
            <p>{text}</p>
            <div class="command">
              <code>{command}</code>
              <Copy text={command} what={`the command for ${title.toLowerCase()}`} />
            </div>
          </li>
        ))}
      </ul>
      <p>
        <code>trivium check PATH</code> says how a model would be served, and what stands in the way, without serving it.
      </p>
    </>
  );
}
