"""Requests to Python values and back, by content type, as DJL's own handlers do it."""

import csv
import io
from typing import Any, Dict, List, Optional

from djl_python.inputs import Input
from djl_python.outputs import Output

_COLUMNS = ("question", "context", "inputs")


def decode(
    inputs: Input, content_type: Optional[str], key: Optional[str] = None, require_csv_headers: bool = True
) -> Any:
    """Return the contents of a request: JSON as it is, anything else as `{"inputs": value}`. ValueError if
    malformed.
    """
    if not content_type:
        return inputs.get_as_json(key) if inputs.get_as_bytes(key) else {"inputs": ""}
    if "application/json" in content_type:
        return inputs.get_as_json(key)
    if "text/csv" in content_type:
        return _decode_csv(inputs.get_as_string(key) or "", require_csv_headers)
    if "text/plain" in content_type:
        return {"inputs": [inputs.get_as_string(key)]}
    if content_type.startswith("image/"):
        return {"inputs": inputs.get_as_image(key)}
    if content_type.startswith("tensor/npz"):
        return {"inputs": inputs.get_as_npz(key)}
    if content_type.startswith(("tensor/ndlist", "application/x-npy")):
        return {"inputs": inputs.get_as_numpy(key)}
    if "application/x-www-form-urlencoded" in content_type:
        return {"inputs": inputs.get_as_string(key)}
    return {"inputs": inputs.get_as_bytes(key)}


def encode(outputs: Output, prediction: Any, content_type: Optional[str], key: Optional[str] = None) -> None:
    """Add a prediction in the form asked for, with its content type: JSON (also if nothing was asked for), csv, npz,
    else an NDList.
    """
    if not content_type or "application/json" in content_type:
        outputs.add_property("Content-Type", "application/json")
        outputs.add_as_json(prediction, key)
    elif "text/csv" in content_type:
        outputs.add_property("Content-Type", "text/csv")
        outputs.add(_encode_csv(prediction), key)
    elif "tensor/npz" in content_type:
        outputs.add_property("Content-Type", "tensor/npz")
        outputs.add_as_npz(prediction, key)
    else:
        outputs.add_property("Content-Type", "tensor/ndlist")
        outputs.add_as_numpy(prediction, key)


def _decode_csv(text: str, require_headers: bool) -> Dict[str, Any]:
    head = text.split("\n", 1)[0].lower()
    if any(column in head for column in _COLUMNS):
        rows: List[Any] = list(csv.DictReader(io.StringIO(text)))
        if rows and "inputs" in rows[0]:
            rows = [row["inputs"] for row in rows]
        return {"inputs": rows}
    if require_headers:
        raise ValueError(
            "the first line of a CSV request must name its columns, one of them %s" % ", ".join(_COLUMNS)
        )
    import numpy

    lines = [row for row in csv.reader(io.StringIO(text)) if row]
    return {"inputs": numpy.array([[float(cell) for cell in row] for row in lines])}


def _encode_csv(prediction: Any) -> str:
    file = io.StringIO()
    rows = prediction if isinstance(prediction, list) else [prediction]
    if rows and isinstance(rows[0], dict):
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        lines = [list(row) if isinstance(row, (list, tuple)) else [row] for row in rows]
        csv.writer(file, lineterminator="\n").writerows(lines)
    return file.getvalue()
