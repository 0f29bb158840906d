// Paper for strokes. Keys: the arrows move, the space bar sets the pen down and lifts it, Backspace takes a line back.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Point } from "../drawing";

const SIDE = 280;
const STEP = 1 / 8;
const MOVES: Record<string, [number, number]> = {
  ArrowLeft: [-STEP, 0],
  ArrowRight: [STEP, 0],
  ArrowUp: [0, -STEP],
  ArrowDown: [0, STEP],
};

interface Props {
  strokes: Point[][];
  change: (strokes: Point[][]) => void;
}

export function Pad({ strokes, change }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const begun = useRef<Point[] | null>(null); // events come faster than the page is drawn
  const [, redraw] = useState(0);
  const line = begun.current;
  const setLine = (points: Point[] | null) => {
    begun.current = points;
    redraw((before) => before + 1);
  };
  const [pen, setPen] = useState<Point | null>(null);
  useEffect(() => {
    if (canvas.current) draw(canvas.current, line ? [...strokes, line] : strokes, pen);
  });
  useEffect(() => {
    if (!strokes.length) setLine(null);
  }, [strokes]);
  const end = () => {
    if (begun.current) change([...strokes, begun.current]);
    setLine(null);
  };
  const down = (event: PointerEvent) => {
    event.preventDefault();
    canvas.current?.setPointerCapture(event.pointerId);
    canvas.current?.focus({ preventScroll: true });
    setPen(null);
    setLine([pointOf(event)]);
  };
  const move = (event: PointerEvent) => {
    if (begun.current && event.buttons) setLine([...begun.current, pointOf(event)]);
  };
  const press = (event: KeyboardEvent) => {
    const at = pen ?? { x: 0.25, y: 0.125 };
    const step = MOVES[event.key];
    if (step) {
      const next = { x: within(at.x + step[0]), y: within(at.y + step[1]) };
      setPen(next);
      if (begun.current) setLine([...begun.current, next]);
    } else if (event.key === " ") {
      setPen(at);
      if (begun.current) end();
      else setLine([at]);
    } else if (event.key === "Backspace") {
      setLine(null);
      change(strokes.slice(0, -1));
    } else return;
    event.preventDefault();
  };
  return (
    <div class="pad">
      <canvas
        ref={canvas}
        width={SIDE * 2}
        height={SIDE * 2}
        tabIndex={0}
        role="application"
        aria-label="Paper to draw a digit on"
        aria-describedby="pad-keys"
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={end}
        onPointerCancel={end}
        onKeyDown={press}
        onFocus={(event) => event.currentTarget.matches(":focus-visible") && setPen((before) => before ?? { x: 0.25, y: 0.125 })}
        onBlur={() => setPen(null)}
      />
      <p id="pad-keys" class="hint">
        Draw with the pointer, or with keys: arrows move, the space bar sets the pen down and lifts it, Backspace undoes.
      </p>
      <p class="unseen" role="status">
        {pen ? `Column ${Math.round(pen.x * 8)}, row ${Math.round(pen.y * 8)}, pen ${line ? "down" : "up"}` : ""}
      </p>
    </div>
  );
}

function pointOf(event: PointerEvent): Point {
  const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
  return { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height };
}

function within(value: number): number {
  return Math.min(1 - STEP, Math.max(STEP, value));
}

function draw(canvas: HTMLCanvasElement, strokes: Point[][], pen: Point | null): void {
  const drawn = canvas.getContext("2d");
  if (!drawn) return;
  const style = getComputedStyle(canvas);
  const size = canvas.width;
  drawn.clearRect(0, 0, size, size);
  drawn.strokeStyle = style.getPropertyValue("--line");
  drawn.lineWidth = 2;
  for (let cell = 1; cell < 8; cell++) {
    drawn.beginPath();
    drawn.moveTo((cell * size) / 8, 0);
    drawn.lineTo((cell * size) / 8, size);
    drawn.moveTo(0, (cell * size) / 8);
    drawn.lineTo(size, (cell * size) / 8);
    drawn.stroke();
  }
  drawn.strokeStyle = style.getPropertyValue("--ink");
  drawn.lineCap = drawn.lineJoin = "round";
  drawn.lineWidth = size / 12;
  for (const stroke of strokes) {
    drawn.beginPath();
    stroke.forEach((point, index) => drawn[index ? "lineTo" : "moveTo"](point.x * size, point.y * size));
    const [first] = stroke;
    if (stroke.length === 1 && first) drawn.lineTo(first.x * size + 0.1, first.y * size);
    drawn.stroke();
  }
  if (!pen) return;
  drawn.strokeStyle = style.getPropertyValue("--accent");
  drawn.lineWidth = 5;
  drawn.beginPath();
  drawn.arc(pen.x * size, pen.y * size, size / 26, 0, 2 * Math.PI);
  drawn.stroke();
}
