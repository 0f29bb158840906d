// A pad to draw a digit on, with a pointer or the arrow keys. What is sent are pixels in a tensor, or a picture where
// the model takes one.

import { useEffect, useRef, useState } from "preact/hooks";
import { fileRequest, v2Request } from "../asking";
import { inked, type Point } from "../drawing";
import { drawnInput, firstShape, inferBody } from "../tensors";
import { Pad } from "./pad";
import type { FormProps } from "./try_it";

const PICTURE_SIDE = 64;

export function DigitForm({ model, change, submit }: FormProps) {
  const fitting = drawnInput(model.inputs);
  const target = model.try_it.kinds.includes("picture") ? null : fitting;
  const side = fitting?.side ?? 28;
  const [strokes, setStrokes] = useState<Point[][]>([]);
  const [file, setFile] = useState("");
  const turn = useRef(0);
  const small = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const pixels = inked(strokes, side);
    if (small.current) paint(small.current, pixels, side);
    const mine = ++turn.current;
    if (!strokes.length) return change(null);
    if (target) {
      const { spec, most } = target;
      const values = pixels.map((ink) => (most === 255 ? Math.round(ink * 255) : ink)).join(" ");
      const body = inferBody(model.inputs, { [spec.name]: { shape: firstShape(spec).join(), values } });
      if ("fault" in body) change(null, body.fault);
      else change(v2Request(model.name, body.value));
      return submit();
    }
    void picture(pixels, side).then((drawn) => {
      if (mine !== turn.current) return;
      change(fileRequest(model.try_it, drawn, "drawing.png"));
      setFile((before) => {
        if (before) URL.revokeObjectURL(before);
        return URL.createObjectURL(drawn);
      });
      submit();
    });
  }, [strokes]);
  return (
    <div class="digit">
      <Pad strokes={strokes} change={setStrokes} />
      <div class="digit-side">
        <p>What the model sees</p>
        <canvas ref={small} width={side} height={side} role="img" aria-label={`The drawing in ${side} by ${side} pixels`} />
        <button class="quiet" type="button" onClick={() => setStrokes([])}>
          Clear
        </button>
        {file && strokes.length > 0 && (
          <a href={file} download="drawing.png">
            Save drawing.png
          </a>
        )}
      </div>
    </div>
  );
}

function paint(canvas: HTMLCanvasElement, pixels: number[], side: number): void {
  const drawn = canvas.getContext("2d");
  if (!drawn) return;
  const image = drawn.createImageData(side, side);
  pixels.forEach((ink, index) => image.data.set([ink * 255, ink * 255, ink * 255, 255], index * 4));
  drawn.putImageData(image, 0, 0);
}

/** Light ink on dark paper, as a PNG of 64 × 64. */
function picture(pixels: number[], side: number): Promise<Blob> {
  const [small, large] = [document.createElement("canvas"), document.createElement("canvas")];
  small.width = small.height = side;
  large.width = large.height = PICTURE_SIDE;
  paint(small, pixels, side);
  const drawn = large.getContext("2d");
  if (drawn) drawn.imageSmoothingEnabled = side > 8; // each of few pixels stays what it is
  drawn?.drawImage(small, 0, 0, PICTURE_SIDE, PICTURE_SIDE);
  return new Promise((resolve, reject) =>
    large.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png"),
  );
}
