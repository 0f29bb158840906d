// One model: what it does now, and the parts that lie behind the links below its name.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { change, type Finding, type Model, modelPath, read, type Row } from "../api";
import { count, duration, rate, tensor } from "../format";
import type { Live } from "../live";
import { modelAddress, type Part, PARTS } from "../route";
import { Chart } from "./chart";
import { Action, Figure, Findings, State, Trouble, useAnswer } from "./parts";
import { RequestsPart } from "./requests";
import { TryItPart } from "./try_it";
import { WorkersPart } from "./workers";
import { ConfigurationPart, VersionsPart } from "./written";

const NAMES: Record<Part, string> = {
  now: "Now",
  try: "Try it",
  requests: "Requests",
  workers: "Workers",
  configuration: "Configuration",
  versions: "Versions",
};

interface Props {
  name: string;
  part: Part;
  live: Live;
}

export function ModelPage({ name, part, live }: Props) {
  const [turn, setTurn] = useState(0);
  const rows = live.overview?.models.filter((row) => row.name === name) ?? [];
  const states = rows.map((row) => `${row.version} ${row.state} ${row.reason}`).join();
  const path = modelPath(name);
  const { answer, refusal } = useAnswer(() => read<Model>(path), `${states} ${turn}`);
  const row = rows.find((one) => one.version === answer?.version) ?? rows.at(-1) ?? answer;
  if (!row) {
    return (
      <>
        <h1>{name}</h1>
        <p class="lead">{refusal ? refusal.message : "Asking the server."}</p>
        <p>
          <a href="#/">All models</a>
        </p>
      </>
    );
  }
  const act = (action: string) => async () => {
    try {
      await change(`${path}/${action}`);
    } finally {
      setTurn((before) => before + 1);
    }
  };
  const isServed = row.state === "ready" || row.state === "loading";
  return (
    <>
      <p class="crumb">
        <a href="#/">Models</a>
      </p>
      <div class="title">
        <div>
          <div class="name">
            <h1>{name}</h1>
            <State state={row.state} />
          </div>
          <p class="under">
            version {row.version}
            {row.engine ? `, ${row.engine}` : ""}
            {answer ? `, from ${answer.origin}` : ""}
          </p>
        </div>
        <span class="actions">
          <Action name={isServed ? "Load again" : "Load"} act={act("load")} isMain={!isServed} />
          {isServed && <Action name="Unload" act={act("unload")} />}
        </span>
      </div>
      <Parts name={name} part={part} />
      {refusal && <p class="refusal">{refusal.message}</p>}
      <PartOf part={part} model={answer} row={row} live={live} />
    </>
  );
}

function Parts({ name, part }: { name: string; part: Part }) {
  const here = useRef<HTMLAnchorElement>(null);
  useEffect(() => here.current?.scrollIntoView({ block: "nearest", inline: "center" }), [part]);
  return (
    <nav class="parts" aria-label={`Parts of ${name}`}>
      {PARTS.map((one) => (
        <a
          key={one}
          ref={one === part ? here : undefined}
          href={modelAddress(name, one)}
          aria-current={one === part ? "page" : undefined}
        >
          {NAMES[one]}
        </a>
      ))}
    </nav>
  );
}

function PartOf({ part, model, row, live }: { part: Part; model: Model | null; row: Row; live: Live }) {
  if (part === "now") return <NowPart row={row} model={model} live={live} />;
  if (part === "requests") return <RequestsPart model={row.name} />;
  if (!model) return <p class="waits">Asking the server.</p>;
  if (part === "try") return <TryItPart model={model} row={row} />;
  if (part === "workers") return <WorkersPart row={row} live={live} />;
  if (part === "configuration") return <ConfigurationPart model={model} />;
  return <VersionsPart model={model} />;
}

function NowPart({ row, model, live }: { row: Row; model: Model | null; live: Live }) {
  const findings = model?.findings ?? [];
  const isIdle = row.state !== "ready" && row.requests === 0;
  const others = findings.filter((one) => one.text !== row.reason);
  const found = others.length > 0 && (
    <section>
      <h2>Findings</h2>
      <Findings findings={others} />
    </section>
  );
  return (
    <>
      {row.reason && <Trouble title={row.reason} mend={mendOf(row, findings)} />}
      {row.reason && found}
      {!isIdle && <Figures row={row} live={live} />}
      {model && (model.inputs.length > 0 || model.outputs.length > 0) && (
        <div class="signature">
          <Tensors title="Inputs" model={model} side="inputs" />
          <Tensors title="Outputs" model={model} side="outputs" />
        </div>
      )}
      {!row.reason && found}
    </>
  );
}

/** What the one finding says that could be the reason, and how to go on from there. */
function mendOf(row: Row, findings: Finding[]): string {
  const errors = findings.filter((one) => one.severity === "error");
  const mend = (errors.find((one) => one.text === row.reason && one.mend) ?? errors[0])?.mend;
  const first = mend ? mend.replace(/([^.?!])$/, "$1.") : "Mend what is named there.";
  return row.state === "ready" ? first : `${first} Then press Load.`;
}

function Figures({ row, live }: { row: Row; live: Live }) {
  const now = Math.floor(live.now);
  const times = useMemo(() => row.history.map((_, index) => now - row.history.length + 1 + index), [now, row.history.length]);
  const kept = live.moments.get(row.name) ?? [];
  const since = kept.map((moment) => moment.when);
  return (
    <>
      <dl class="figures">
        <Figure name="Requests/s">{rate(row.requests_per_s)}</Figure>
        <Figure name="p50">{duration(row.p50_s)}</Figure>
        <Figure name="p99">{duration(row.p99_s)}</Figure>
        <Figure name="Waiting">{row.waiting}</Figure>
        <Figure name="Running">{row.running}</Figure>
        <Figure name="Requests">{count(row.requests)}</Figure>
        <Figure name="Failed">{count(row.failures)}</Figure>
      </dl>
      <div class="charts">
        <Chart
          title="Requests each second"
          times={times}
          lines={[{ name: "requests", values: row.history }]}
          shown={count}
          isWhole
        />
        <Chart
          title="Time to answer"
          times={since}
          lines={[
            { name: "p50", values: kept.map((moment) => moment.p50_s) },
            { name: "p99", values: kept.map((moment) => moment.p99_s) },
          ]}
          shown={duration}
        />
      </div>
    </>
  );
}

function Tensors({ title, model, side }: { title: string; model: Model; side: "inputs" | "outputs" }) {
  return (
    <section>
      <h2>{title}</h2>
      <dl class="pairs">
        {model[side].map((one) => (
          <div key={one.name}>
            <dt>{one.name}</dt>
            <dd>
              <code>{tensor(one.datatype, one.shape)}</code>
              {one.is_optional ? " optional" : ""}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
