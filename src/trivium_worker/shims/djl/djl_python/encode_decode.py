"""Requests to Python values and back, by content type, as DJL's own handlers do it."""

import csv
import io
from typing import Any

from djl_python.inputs import Input
from djl_python.outputs import Output

_COLUMNS = ("question", "context", "inputs")


def decode(
    inputs: Input, content_type: str | None, key: str | None = None, require_csv_headers: bool = True
) -> Any:
    """Return the contents of a request: JSON as it is, anything else as `{"inputs": value}`. ValueError if
    malformed.
    """
    if not content_type:
        return inputs.get_as_json(key) if inputs.get_as_bytes(key) else {"inputs": ""}
    if "application/json" in content_type:
        return inputs.get_as_json(key)
    if "text/csv" in content_type:
        return _decode_csv(inputs.get_as_string(key), require_csv_headers)
    if "text/plain" in content_type:
        return {"inputs": [inputs.get_as_string(key)]}
    if content_type.startswith("image/"):
        return {"inputs": inputs.get_as_image(key)}
    if "tensor/npz" in content_type:
        return {"inputs": inputs.get_as_npz(key)}
    if content_type in ("tensor/ndlist", "application/x-npy"):
        return {"inputs": inputs.get_as_numpy(key)}
    if content_type == "application/x-www-form-urlencoded":
        return {"inputs": inputs.get_as_string(key)}
    return {"inputs": inputs.get_as_bytes(key)}


def encode(outputs: Output, prediction: Any, content_type: str | None, key: str | None = None) -> None:
    """Add a prediction in the form asked for, with its content type: JSON (also if nothing was asked for), csv, npz,
    else an NDList.
    """
    if not content_type or "application/json" in content_type:
        outputs.add_as_json(prediction, key).add_property("Content-Type", "application/json")
    elif "text/csv" in content_type:
        outputs.add(encode_csv(prediction), key).add_property("Content-Type", "text/csv")
    elif "tensor/npz" in content_type:
        outputs.add_as_npz(prediction, key).add_property("Content-Type", "tensor/npz")
    else:
        outputs.add_as_numpy(prediction, key).add_property("Content-Type", "tensor/ndlist")


def decode_csv(inputs: Input, require_headers: bool = True) -> Any:
    """Return the rows of a request as `{"inputs": rows}`, or as an array of numbers where no names are required."""
    return _decode_csv(inputs.get_as_string(), require_headers)


def encode_csv(content: Any) -> str:
    """Return rows as CSV: dicts under a line of the names that the first one has, anything else without one."""
    file = io.StringIO()
    rows = content if isinstance(content, list) else list(content)
    if isinstance(rows[0], dict):
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    else:
        csv.writer(file).writerows(row if isinstance(row, (list, tuple)) else [row] for row in rows)
    return file.getvalue()


def _decode_csv(text: str, require_headers: bool) -> Any:
    if require_headers:
        head = text.splitlines()[0].lower()
        if not any(column in head for column in _COLUMNS):
            raise ValueError(
                "You need to provide the correct CSV with Header columns to use it with the inference toolkit "
                "default handler."
            )
        rows = list(csv.DictReader(io.StringIO(text)))
        return {"inputs": [row["inputs"] for row in rows] if "inputs" in rows[0] else rows}
    import numpy

    numbers = numpy.genfromtxt(io.StringIO(text), delimiter=",")
    if numpy.isnan(numbers).any():
        raise ValueError("CSV contains non-numeric data. Please provide numeric data only.")
    return numbers
