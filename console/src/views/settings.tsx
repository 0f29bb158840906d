// What was set, to what, and where that was written: of the server, and of a model.

import type { Setting } from "../api";
import { shown } from "../format";
import { Wide } from "./parts";

export const nameOf = (setting: Setting): string => setting.key ?? setting.name ?? "";

export function SettingsTable({ label, heads, settings }: { label: string; heads: string[]; settings: Setting[] }) {
  return (
    <Wide label={label}>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {settings.map((one, index) => (
            <tr key={index}>
              <th scope="row">
                <code>{nameOf(one)}</code>
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
  );
}
