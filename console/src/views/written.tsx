// What a model was configured with, from which file and line, and which of its versions there are.

import type { Model } from "../api";
import { shown } from "../format";
import { Findings, State, Wide } from "./parts";

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
      <Wide label="Configuration">
        <table>
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Value</th>
              <th scope="col">Written in</th>
            </tr>
          </thead>
          <tbody>
            {model.configuration.map((one, index) => (
              <tr key={index}>
                <th scope="row">
                  <code>{one.key ?? one.name}</code>
                </th>
                <td>
                  <code>{shown(one.value)}</code>
                </td>
                <td class="where">{one.where ?? "default"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
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
