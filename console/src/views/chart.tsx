// Lines over time: a small one in a row, and a large one with its figures as a table.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

export interface Line {
  name: string;
  values: (number | null)[];
}

const HEIGHT = 180;
const WHOLE = Array.from({ length: 8 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
const SECONDS = 60;
const [WIDE, HIGH] = [120, 28];

/** Requests each second, the last minute. Its figures stand beside it in the row. */
export function Spark({ values }: { values: number[] }) {
  const most = Math.max(1, ...values);
  const step = WIDE / (SECONDS - 1);
  const drawn = [...new Array<number>(Math.max(0, SECONDS - values.length)).fill(0), ...values];
  const at = (value: number, index: number) =>
    `${(index * step).toFixed(1)},${(HIGH - 2 - (value / most) * (HIGH - 4)).toFixed(1)}`;
  const line = drawn.map(at).join(" ");
  const name = `Requests each second over the last minute: now ${values.at(-1) ?? 0}, at most ${Math.max(0, ...values)}`;
  return (
    <svg class={most > 1 || values.some(Boolean) ? "spark" : "spark idle"} viewBox={`0 0 ${WIDE} ${HIGH}`} role="img" aria-label={name} preserveAspectRatio="none">
      <polygon points={`0,${HIGH} ${line} ${WIDE},${HIGH}`} />
      <polyline points={line} />
    </svg>
  );
}

interface ChartProps {
  title: string;
  /** Unix seconds, oldest first. */
  times: number[];
  lines: Line[];
  shown: (value: number) => string;
  isWhole?: boolean;
}

export function Chart({ title, times, lines, shown, isWhole }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const names = lines.map((line) => line.name).join();
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options({ element, lines, shown, isWhole, point: setPointed }), data(times, lines), element);
    };
    draw();
    const size = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    size.observe(element);
    dark.addEventListener("change", draw);
    return () => {
      size.disconnect();
      dark.removeEventListener("change", draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [names]);
  useEffect(() => plot.current?.setData(data(times, lines)), [times, lines]);
  const index = pointed !== null && pointed < times.length ? pointed : times.length - 1;
  return (
    <figure class="chart">
      <figcaption>
        <span>{title}</span>
        <span class="legend">
          {lines.map((line, number) => (
            <span key={line.name} class={`line-${number}`}>
              {line.name} <b>{value(line.values[index], shown)}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div class="plot" ref={place} aria-hidden="true" />
      <details>
        <summary>{title} as a table</summary>
        <Table times={times} lines={lines} shown={shown} title={title} />
      </details>
    </figure>
  );
}

function Table({ title, times, lines, shown }: ChartProps) {
  const last = times.at(-1) ?? 0;
  const rows = times.map((time, index) => ({ time, index })).reverse().slice(0, 60);
  return (
    <div class="wide figures-table" role="region" aria-label={`${title}, figures`} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Seconds ago</th>
            {lines.map((line) => (
              <th key={line.name} scope="col" class="number">{line.name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ time, index }) => (
            <tr key={index}>
              <th scope="row">{Math.round(last - time)}</th>
              {lines.map((line) => (
                <td key={line.name} class="number">{value(line.values[index], shown)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function value(number: number | null | undefined, shown: (value: number) => string): string {
  return number === null || number === undefined ? "–" : shown(number);
}

/** Seconds before the last moment, so that the marks below stay where they are. */
function data(times: number[], lines: Line[]): uPlot.AlignedData {
  const last = times.at(-1) ?? 0;
  return [times.map((time) => time - last), ...lines.map((line) => line.values)];
}

interface Drawn {
  element: HTMLElement;
  lines: Line[];
  shown: (value: number) => string;
  isWhole: boolean | undefined;
  point: (index: number | null) => void;
}

function options({ element, lines, shown, isWhole, point }: Drawn): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const font = `12px ${style.fontFamily}`;
  const axis = {
    stroke: colour("--muted"),
    font,
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
  };
  const strokes = [colour("--accent"), colour("--muted")];
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
    padding: [8, 18, 0, 0],
    scales: { x: { time: false, range: (_plot, first) => [Math.min(first ?? -60, -60), 0] }, y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.15 : 1] } },
    axes: [
      { ...axis, size: 24, grid: { show: false }, space: 60, values: (_plot, ticks) => ticks.map(before) },
      { ...axis, size: 62, space: 44, ...(isWhole ? { incrs: WHOLE } : {}), values: (_plot, ticks) => ticks.map(shown) },
    ],
    series: [
      {},
      ...lines.map((line, index) => ({
        label: line.name,
        stroke: strokes[index % 2] ?? "",
        width: 1.75,
        points: { show: false },
        ...(index === 0 ? { fill: colour("--accent-wash") } : {}),
      })),
    ],
    hooks: { setCursor: [(drawn) => point(drawn.cursor.idx ?? null)] },
  };
}

function before(seconds: number): string {
  return seconds >= 0 ? "now" : `−${Math.round(-seconds)} s`;
}
