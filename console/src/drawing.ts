// A drawing as a model of digits wants it: strokes in, ink per pixel out. Pure, so that pointer and keyboard are one.

export interface Point {
  x: number;
  y: number;
}

/** Points of one line, each coordinate from 0 to 1. */
export type Stroke = readonly Point[];

const FINE = 4; // samples along each side of a pixel
const MARGIN = { 8: 0, 28: 4 } as const; // pixels that the training pictures leave free

/** Ink from 0 to 1, row by row, `side` × `side`: the drawing is moved to the middle and fills the height, as in the
 * pictures that such models have learnt. Nothing drawn is all zeros. */
export function inked(strokes: readonly Stroke[], side: 8 | 28): number[] {
  const drawn = strokes.filter((stroke) => stroke.length > 0);
  const pixels = new Array<number>(side * side).fill(0);
  if (!drawn.length) return pixels;
  const inner = side - MARGIN[side] * 2;
  const radius = inner / 13;
  const fitted = fit(drawn, side / 2, inner - 2 * radius);
  for (let index = 0; index < pixels.length; index++) {
    const left = index % side;
    const top = Math.floor(index / side);
    let hits = 0;
    for (let sample = 0; sample < FINE * FINE; sample++) {
      const x = left + ((sample % FINE) + 0.5) / FINE;
      const y = top + (Math.floor(sample / FINE) + 0.5) / FINE;
      if (fitted.some((stroke) => isNear(stroke, x, y, radius))) hits++;
    }
    pixels[index] = Math.round((hits / FINE ** 2) * 1000) / 1000;
  }
  return pixels;
}

/** The strokes scaled by one factor for both sides, so that the longer side is `size`, round a centre. */
function fit(strokes: readonly Stroke[], centre: number, size: number): Point[][] {
  const points = strokes.flat();
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
  const extent = Math.max(right - left, bottom - top);
  const scale = extent > 0.02 ? size / extent : 0;
  return strokes.map((stroke) =>
    stroke.map(({ x, y }) => ({
      x: centre + (x - (left + right) / 2) * scale,
      y: centre + (y - (top + bottom) / 2) * scale,
    })),
  );
}

function isNear(stroke: readonly Point[], x: number, y: number, radius: number): boolean {
  return stroke.some((end, index) => {
    const start = stroke[Math.max(0, index - 1)] ?? end;
    const along = { x: end.x - start.x, y: end.y - start.y };
    const length = along.x ** 2 + along.y ** 2;
    const at = length ? ((x - start.x) * along.x + (y - start.y) * along.y) / length : 0;
    const share = Math.min(1, Math.max(0, at));
    return (x - start.x - share * along.x) ** 2 + (y - start.y - share * along.y) ** 2 <= radius ** 2;
  });
}
