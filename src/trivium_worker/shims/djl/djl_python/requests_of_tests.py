"""Requests as a test makes them, and the contents of answers; `test_model` has them under DJL's names."""

import os
from collections.abc import Sequence
from typing import Any

from djl_python.inputs import Input, Properties
from djl_python.outputs import Output, as_json
from djl_python.pair_list import PairList

_TYPE = "content-type"
_JSON, _TEXT = "application/json", "text/plain"
_NDLIST, _NPZ = "tensor/ndlist", "tensor/npz"
_TYPES = {
    ".json": _JSON,
    ".txt": _TEXT,
    ".gif": "image/gif",
    ".png": "image/png",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".ndlist": _NDLIST,
    ".npz": _NPZ,
}


def create_request(input_files: Sequence[str], parameters: Sequence[str] | None) -> Input:
    """Return a request with contents from files, each `path` or `key=path`, and properties, each `key=value`.

    What is no file is text, or JSON where it has braces around it.
    """
    request = _request()
    for parameter in parameters or ():
        pair = parameter.split("=")
        if len(pair) != 2:
            raise ValueError(f"Invalid model parameter: {parameter}")
        request.properties[pair[0]] = pair[1]
    body = None
    for given in input_files:
        front, sign, rest = given.partition("=")
        key, value = (front, rest) if sign else (None, given)
        if body is None or key == "data":
            body = value
        if os.path.exists(value):
            with open(value, "rb") as file:
                request.content.add(key, file.read())
        else:
            request.content.add(key, value.encode("utf-8"))
            is_object = value.startswith("{") and value.endswith("}")
            request.properties[_TYPE] = _JSON if is_object else _TEXT
    if body is None:
        raise ValueError("a request without contents: give at least one file or text")
    for ending, kind in _TYPES.items():
        if body.endswith(ending):
            request.properties[_TYPE] = kind
    return request


def create_json_request(json_data: Any, key: str | None = None) -> Input:
    """Return a request whose body is JSON."""
    return _request(_JSON, key, as_json(json_data).encode("utf-8"))


def create_text_request(text: str, key: str | None = None) -> Input:
    """Return a request whose body is text."""
    return _request(_TEXT, key, text.encode("utf-8"))


def create_numpy_request(list: Any, key: str | None = None) -> Input:
    """Return a request whose body is an NDList of numpy arrays."""
    from djl_python.np_util import to_nd_list

    return _request(_NDLIST, key, to_nd_list(list))


def create_npz_request(list: Any, key: str | None = None) -> Input:
    """Return a request whose body is an npz archive of numpy arrays."""
    from djl_python.np_util import to_npz

    return _request(_NPZ, key, to_npz(list))


def create_concurrent_batch_request(
    inputs: Sequence[Any],
    properties: Sequence[dict[str, Any]] | None = None,
    serving_properties: dict[str, Any] | None = None,
) -> Input:
    """Return a batch: a request per item of `inputs`, its body that item as JSON, with the properties at its place."""
    request = Input()
    request.properties.update(serving_properties or {})
    for index, own in enumerate(properties or ()):
        for key, value in own.items():
            request.properties[f"batch_{index:03d}_{key}"] = value
    request.content = PairList()
    for index, data in enumerate(inputs):
        request.content.add(f"batch_{index:03d}_data", as_json(data).encode("utf-8"))
    request.function_name = request.properties.get("handler", "handle")
    request.properties["batch_size"] = len(inputs)  # type: ignore[assignment]
    return request


def extract_output_as_input(outputs: Output) -> Input:
    """Return an answer's properties and contents as a request, which has the methods to read them."""
    inputs = Input()
    inputs.properties = Properties(outputs.properties)
    inputs.content = outputs.content
    return inputs


def extract_output_as_bytes(outputs: Output, key: str | None = None) -> Any:
    """Return an answer's content `key`, without one `data` or else the first."""
    return extract_output_as_input(outputs).get_as_bytes(key)


def extract_output_as_string(outputs: Output, key: str | None = None) -> Any:
    """Return it as text."""
    return extract_output_as_input(outputs).get_as_string(key)


def extract_output_as_numpy(outputs: Output, key: str | None = None) -> list[Any]:
    """Return it as the arrays of an NDList."""
    arrays: list[Any] = extract_output_as_input(outputs).get_as_numpy(key)
    return arrays


def extract_output_as_npz(outputs: Output, key: str | None = None) -> list[Any]:
    """Return it as the arrays of an npz archive."""
    arrays: list[Any] = extract_output_as_input(outputs).get_as_npz(key)
    return arrays


def _request(kind: str = "", key: str | None = None, body: Any = None) -> Input:
    request = Input()
    request.properties["device_id"] = "-1"
    if kind:
        request.properties[_TYPE] = kind
    request.content.add(key, body)
    return request
