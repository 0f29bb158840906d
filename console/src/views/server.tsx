// The server itself: where it listens, what it was set to and by whom, its memory, and how much it tells.

import { useState } from "preact/hooks";
import { change, type Overview, read, type Settings } from "../api";
import { bytes, count, shown, span } from "../format";
import type { Live } from "../live";
import { Action, Figure, useAnswer } from "./parts";
import { nameOf, SettingsTable } from "./settings";

const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR"];

export function ServerPage({ live, overview }: { live: Live; overview: Overview }) {
  const [turn, setTurn] = useState(0);
  const { answer, refusal } = useAnswer(() => read<Settings>("/settings"), String(turn), 10);
  const [filter, setFilter] = useState("");
  const [level, setLevel] = useState<string | null>(null);
  if (!answer) return <p class="waits">{refusal?.message ?? "Asking the server."}</p>;
  const found = answer.settings.filter((one) => nameOf(one).toLowerCase().includes(filter.toLowerCase()));
  const levels = LEVELS.includes(answer.log_level) ? LEVELS : [answer.log_level, ...LEVELS];
  const setLogLevel = async () => {
    await change("/settings/log-level", { level: level ?? answer.log_level });
    setLevel(null);
    setTurn(turn + 1);
  };
  return (
    <>
      <h1>Server</h1>
      <dl class="figures">
        <Figure name="Version">{overview.server.version}</Figure>
        <Figure name="Up for">{span(live.now - overview.server.started)}</Figure>
        <Figure name="Connections">{count(answer.connections)}</Figure>
        {Object.entries(answer.memory).map(([name, value]) => (
          <Figure key={name} name={spelt(name)}>
            {typeof value === "number" ? bytes(value) : shown(value)}
          </Figure>
        ))}
      </dl>
      <h2>Listens on</h2>
      <dl class="pairs">
        {answer.listeners.map((listener) => (
          <div key={listener.name + listener.address}>
            <dt>{listener.name}</dt>
            <dd>
              <code>{listener.address}</code>
            </dd>
          </div>
        ))}
      </dl>
      <h2>Log</h2>
      <div class="row">
        <label>
          <span>Level</span>
          <select value={level ?? answer.log_level} onChange={(event) => setLevel(event.currentTarget.value)}>
            {levels.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
        <Action name="Set" act={setLogLevel} />
      </div>
      <h2>Settings</h2>
      <label class="filter">
        <span>Find a setting</span>
        <input type="search" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
      </label>
      <SettingsTable label="Settings" heads={["Setting", "Value", "Set by"]} settings={found} />
    </>
  );
}

/** resident_bytes → Resident */
function spelt(name: string): string {
  const words = name.replace(/_(bytes|s)$/, "").replace(/_/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
