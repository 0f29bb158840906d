// Figures as people read them. Pure.

export const NONE = "–";

/** A count: 1,234; from ten thousand on 12.3 k, 4.56 M. */
export function count(value: number): string {
  if (value < 10_000) return grouped(Math.round(value));
  const [unit, size] = value < 1e6 ? ["k", 1e3] : value < 1e9 ? ["M", 1e6] : ["G", 1e9];
  return `${significant(value / Number(size))} ${unit}`;
}

/** Something each second: 0, 0.4, 12, 1,234. */
export function rate(value: number): string {
  if (value <= 0) return "0";
  if (value < 0.1) return "<0.1";
  return value < 9.95 ? value.toFixed(1) : count(value);
}

/** A duration in seconds with the unit that fits: 420 µs, 12.3 ms, 1.24 s, 3 min. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  if (seconds === 0) return "0 s";
  if (seconds < 0.0009995) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 0.9995) return `${significant(seconds * 1e3)} ms`;
  if (seconds < 99.5) return `${significant(seconds)} s`;
  return span(seconds);
}

/** A long time in one unit or two: 45 s, 12 min, 3 h 5 min, 2 d 4 h. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86_400) return joined(Math.floor(whole / 3600), "h", Math.floor((whole % 3600) / 60), "min");
  return joined(Math.floor(whole / 86_400), "d", Math.floor((whole % 86_400) / 3600), "h");
}

/** Bytes by powers of 1024, named as they are: 512 B, 83.6 MiB. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  let left = value;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (left < 1024) return unit === "B" ? `${left} B` : `${significant(left)} ${unit}`;
    left /= 1024;
  }
  return `${significant(left)} TiB`;
}

/** How long ago a moment was, both in Unix seconds. */
export function ago(when: number, now: number): string {
  const passed = now - when;
  return passed < 1 ? "now" : `${span(passed)} ago`;
}

/** A moment of today as 15:04:05, of another day with its date, in the time zone of the reader. */
export function clock(when: number, now: number): string {
  const date = new Date(when * 1000);
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(twoDigits).join(":");
  const today = new Date(now * 1000);
  if (date.toDateString() === today.toDateString()) return time;
  return `${date.getFullYear()}-${twoDigits(date.getMonth() + 1)}-${twoDigits(date.getDate())} ${time}`;
}

/** A tensor's type and shape as the server writes them: FP32[-1,3]. */
export function tensor(datatype: string, shape: readonly number[]): string {
  return `${datatype}[${shape.join(",")}]`;
}

/** A share of one: 98.5 %. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(share >= 0.9995 || share === 0 ? 0 : 1)} %`;
}

/** A number of an answer with four digits that count. */
export function figure(value: number): string {
  if (Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return size >= 1e-4 && size < 1e6 ? String(Number(value.toPrecision(4))) : value.toExponential(2);
}

/** A value of a configuration, on one line. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return NONE;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function significant(value: number): string {
  return value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0);
}

function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

function joined(first: number, unit: string, second: number, smaller: string): string {
  return second ? `${first} ${unit} ${second} ${smaller}` : `${first} ${unit}`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}
