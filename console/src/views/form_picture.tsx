// A picture from this machine, as the file is.

import { useEffect, useState } from "preact/hooks";
import { fileRequest } from "../asking";
import { bytes } from "../format";
import type { FormProps } from "./try_it";

export function PictureForm({ model, change }: FormProps) {
  const [file, setFile] = useState<File | null>(null);
  const [address, setAddress] = useState("");
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    if (!file) return change(null);
    change(fileRequest(model.try_it, file, file.name));
    const made = URL.createObjectURL(file);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    const dropped = event.dataTransfer?.files[0];
    if (dropped) setFile(dropped);
  };
  const drag = (event: DragEvent) => {
    event.preventDefault();
    setOver(true);
  };
  return (
    <label class={`drop ${isOver ? "over" : ""}`} onDragOver={drag} onDragLeave={() => setOver(false)} onDrop={drop}>
      {file ? <img src={address} alt={`The picture ${file.name}`} /> : <span>Drop a picture here, or choose one</span>}
      {file && (
        <span class="where">
          {file.name}, {bytes(file.size)}
        </span>
      )}
      <input type="file" accept="image/*" onChange={(event) => setFile(event.currentTarget.files?.[0] ?? file)} />
    </label>
  );
}
