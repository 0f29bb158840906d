// A drawing as a model of digits wants it: strokes in, ink per pixel out. Pure, so that pointer and keyboard are one.

export interface Point {
  x: number;
  y: number;
}

/** Points of one line, each coordinate from 0 to 1. */
export type Stroke = readonly Point[];

const FINE = 4; // samples along each side of a pixel
const SMALL = 8; // a picture that a digit fills; larger ones leave a seventh free on each side
const [BROAD, FINE_LINE] = [1.05 / 8, 1 / 13]; // half a stroke's width, of the part that is drawn on

/** Ink from 0 to 1, row by row, `side` × `side`: the drawing is moved to the middle and fills the height, as in the
 * pictures that such models have learnt; in the smallest it is broadened, too, and its lines are broad. Nothing drawn is all zeros. */
export function inked(strokes: readonly Stroke[], side: number): number[] {
  const drawn = strokes.filter((stroke) => stroke.length > 0);
  const pixels = new Array<number>(side * side).fill(0);
  if (!drawn.length) return pixels;
  const isSmall = side <= SMALL;
  const inner = isSmall ? side : side - Math.round(side / 7) * 2;
  const radius = inner * (isSmall ? BROAD : FINE_LINE);
  const fitted = fit(drawn, side / 2, inner - 2 * radius, isSmall);
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

/** The strokes round a centre, so that the longer side is `size`; broadened, by 1.7 at most, they fill 0.85 of it. */
function fit(strokes: readonly Stroke[], centre: number, size: number, isBroadened: boolean): Point[][] {
  const points = strokes.flat();
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
  const [width, height] = [right - left, bottom - top];
  const isDot = Math.max(width, height) <= 0.02;
  const even = isDot ? 0 : size / Math.max(width, height);
  const broad = isDot ? 0 : Math.max(even, Math.min(size / width, 2 * even) * 0.85);
  const across = isBroadened && height > width ? broad : even;
  return strokes.map((stroke) =>
    stroke.map(({ x, y }) => ({
      x: centre + (x - (left + right) / 2) * across,
      y: centre + (y - (top + bottom) / 2) * even,
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
