// What a model was configured with, from which file and line, and which of its versions there are.

import type { Model } from "../api";
import { Findings, State, Wide } from "./parts";
import { SettingsTable } from "./settings";

export function ConfigurationPart({ model }: { model: Model }) {
  return (
    <>
      {model.findings.length > 0 && (
        <>
          <h2>Findings</h2>
          <Findings findings={model.findings} />
        </>
      )}
      <h2>Configuration</h2>
      <SettingsTable label="Configuration" heads={["Key", "Value", "Written in"]} settings={model.configuration} />
    </>
  );
}

export function VersionsPart({ model }: { model: Model }) {
  return (
    <Wide label="Versions">
      <table>
        <thead>
          <tr>
            <th scope="col">Version</th>
            <th scope="col">State</th>
            <th scope="col">Reason</th>
          </tr>
        </thead>
        <tbody>
          {model.versions.map((one) => (
            <tr key={one.version}>
              <th scope="row">{one.version}</th>
              <td>
                <State state={one.state} />
              </td>
              <td class="wraps">{one.reason ?? ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}
