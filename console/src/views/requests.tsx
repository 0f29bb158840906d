// Finished requests of one model, seen only while this page looks: the slowest, the failed, and a sample.

import { read, type Requests, type Timeline } from "../api";
import { clock, duration } from "../format";
import { useAnswer, Wide } from "./parts";

export function RequestsPart({ model }: { model: string }) {
  const { answer, refusal } = useAnswer(() => read<Requests>("/requests"), model, 2);
  if (!answer) return <p class="waits">{refusal?.message ?? "Asking the server."}</p>;
  const of = (list: Timeline[]) => list.filter((one) => one.model === model);
  const [failed, slowest, sample] = [of(answer.failed), of(answer.slowest), of(answer.sample)];
  if (!failed.length && !slowest.length && !sample.length) {
    return <p class="waits">No request has ended since somebody looked. Those that do will stand here, with where their time went.</p>;
  }
  return (
    <>
      <p class="key" aria-hidden="true">
        <span class="queue">waiting</span> <span class="compute">computing</span> <span class="other">reading and sending</span>
      </p>
      <Timelines title="Failed" list={failed} />
      <Timelines title="Slowest" list={slowest} />
      <Timelines title="A sample" list={sample} />
    </>
  );
}

function Timelines({ title, list }: { title: string; list: Timeline[] }) {
  if (!list.length) return null;
  const longest = Math.max(...list.map((one) => one.total_s), 1e-9);
  const now = Date.now() / 1000;
  return (
    <>
      <h2>{title}</h2>
      <Wide label={`${title} requests`}>
        <table class="timelines">
          <thead>
            <tr>
              <th scope="col">Received</th>
              <th scope="col">Status</th>
              <th scope="col" class="number">Waiting</th>
              <th scope="col" class="number">Computing</th>
              <th scope="col" class="number">Total</th>
              <th scope="col" class="number">Batch</th>
              <th scope="col">Where the time went</th>
              <th scope="col">Id</th>
            </tr>
          </thead>
          <tbody>
            {list.map((one, index) => (
              <Request key={`${one.id} ${index}`} one={one} longest={longest} now={now} />
            ))}
          </tbody>
        </table>
      </Wide>
    </>
  );
}

function Request({ one, longest, now }: { one: Timeline; longest: number; now: number }) {
  const queue = (one.queue_s / longest) * 100;
  const compute = (one.compute_s / longest) * 100;
  const total = (one.total_s / longest) * 100;
  return (
    <>
      <tr>
        <td>{clock(one.received, now)}</td>
        <td>{one.status}</td>
        <td class="number">{duration(one.queue_s)}</td>
        <td class="number">{duration(one.compute_s)}</td>
        <td class="number">{duration(one.total_s)}</td>
        <td class="number">{one.batch_size}</td>
        <td>
          <svg class="timeline" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
            <rect class="other" width={total} height="8" />
            <rect class="queue" width={queue} height="8" />
            <rect class="compute" x={queue} width={compute} height="8" />
          </svg>
        </td>
        <td>
          <code>{one.id}</code>
        </td>
      </tr>
      {one.error && (
        <tr class="reason">
          <td colSpan={8}>{one.error}</td>
        </tr>
      )}
    </>
  );
}
