// The instances of a model: where they run, what they hold, who died of what, and the last lines that they wrote.

import { change, type Instance, type LogLine, modelPath, read, type Row } from "../api";
import { ago, bytes, clock, NONE } from "../format";
import type { Live } from "../live";
import { Action, State, useAnswer, Wide } from "./parts";

export function WorkersPart({ row, live }: { row: Row; live: Live }) {
  const path = modelPath(row.name);
  const counts = row.instances;
  const all = counts.ready + counts.starting + counts.failed;
  const key = `${row.name} ${row.state} ${JSON.stringify(counts)} ${live.deaths}`;
  const instances = useAnswer(() => read<{ instances: Instance[] }>(`${path}/instances`), key, 5);
  const logs = useAnswer(() => read<{ lines: LogLine[] }>(`${path}/logs`), key);
  if (!instances.answer) return <p class="waits">{instances.refusal?.message ?? "Asking the server."}</p>;
  const list = instances.answer.instances;
  const deaths = list.flatMap((one) => one.deaths.map((death) => ({ ...death, instance: one.name })));
  deaths.sort((one, other) => other.when - one.when);
  const lines = together(logs.answer?.lines ?? [], live.lines.get(row.name) ?? []);
  const scale = (wanted: number) => () => change(`${path}/scale`, { instances: wanted });
  return (
    <>
      <div class="row scale">
        <span>
          <b>{all}</b> {all === 1 ? "instance" : "instances"}
        </span>
        <Action name="One more" act={scale(all + 1)} />
        {all > 1 && <Action name="One less" act={scale(all - 1)} />}
      </div>
      {list.length > 0 && <Instances list={list} />}
      <h2>Deaths</h2>
      {deaths.length === 0 && <p class="waits">None of them has died.</p>}
      {deaths.map((death, index) => (
        <section class="death" key={index}>
          <h3>{death.cause}</h3>
          <p class="where">
            {death.instance}, {ago(death.when, live.now)}
          </p>
          {death.last_lines.length > 0 && <pre tabIndex={0}>{death.last_lines.join("\n")}</pre>}
        </section>
      ))}
      <h2>Last lines</h2>
      {lines.length === 0 ? (
        <p class="waits">They have written nothing.</p>
      ) : (
        <pre class="log" tabIndex={0} aria-label="Last lines of the workers">
          {lines.map((line) => `${clock(line.when, live.now)}  ${line.text}`).join("\n")}
        </pre>
      )}
    </>
  );
}

function Instances({ list }: { list: Instance[] }) {
  return (
    <Wide label="Instances">
      <table>
        <thead>
          <tr>
            <th scope="col">Instance</th>
            <th scope="col">State</th>
            <th scope="col">Device</th>
            <th scope="col" class="number">Version</th>
            <th scope="col" class="number">Process</th>
            <th scope="col" class="number">Memory</th>
          </tr>
        </thead>
        <tbody>
          {list.map((one) => (
            <tr key={`${one.version} ${one.name}`}>
              <th scope="row">{one.name}</th>
              <td>
                <State state={one.state} />
              </td>
              <td>{one.device}</td>
              <td class="number">{one.version}</td>
              <td class="number">{one.pid ?? NONE}</td>
              <td class="number">{bytes(one.resident_bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}

/** What was there when the page asked, and what has come since. */
function together(asked: readonly LogLine[], came: readonly LogLine[]): LogLine[] {
  const last = asked.at(-1)?.when ?? 0;
  return [...asked, ...came.filter((line) => line.when > last)].slice(-200);
}
