"""Tensors in each form of the sheet's section 9, written and read by nothing of the server's, and broken on purpose."""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from struct import pack, unpack_from
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]
NDLIST, NPZ, NPY, SAFETENSORS, JSON, CSV = (
    *("tensor/ndlist", "tensor/npz", "tensor/npy", "tensor/safetensors"),
    *("application/json", "text/csv"),
)
KINDS = {"f4": "FLOAT32", "f8": "FLOAT64", "i8": "INT64", "b1": "BOOLEAN"}
DTYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}


def utf(text: str) -> bytes:
    return pack(">H", len(text)) + text.encode()


def ndlist(
    arrays: Arrays,
    version: int = 3,
    sparse: str = "DENSE",
    order: str = "<",
    kind: str = "",
    count: int | None = None,
) -> bytes:
    """One as Java writes it; a name that begins with `arr_` is none."""
    made = [pack(">i", len(arrays) if count is None else count)]
    for name, array in arrays.items():
        named = b"\0" if name.startswith("arr_") else b"\1" + utf(name)
        data = array.astype(array.dtype.newbyteorder(order)).tobytes()
        made += [utf("NDAR"), pack(">i", version), named if version > 1 else b"", utf(sparse)]
        made += [utf(kind or KINDS[array.dtype.str[1:]]), pack(">i", array.ndim)]
        made += [pack(f">{array.ndim}q", *array.shape), pack(">i", array.ndim), b"\0?" * array.ndim]
        made += [order.encode() if version == 3 else b"", pack(">i", len(data)), data]
    return b"".join(made)


def npz(arrays: Arrays, is_deflated: bool = False) -> bytes:
    made = io.BytesIO()
    (np.savez_compressed if is_deflated else np.savez)(made, **arrays)
    return made.getvalue()


def npy(arrays: Arrays) -> bytes:
    made = io.BytesIO()
    np.save(made, next(iter(arrays.values())), allow_pickle=True)
    return made.getvalue()


def safetensors(arrays: Arrays, **more: Any) -> bytes:
    names = {value: key for key, value in DTYPES.items()}
    at, header = 0, {}
    for name, array in arrays.items():
        header[name] = {
            "dtype": names[array.dtype.str],
            "shape": array.shape,
            "data_offsets": [at, at + array.nbytes],
            **more,
        }
        at += array.nbytes
    text = json.dumps(header).encode()
    return pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in arrays.values())


WRITERS: Mapping[str, Callable[[Arrays], bytes]] = {
    NDLIST: ndlist,
    NPZ: npz,
    NPY: npy,
    SAFETENSORS: safetensors,
}


def read_ndlist(data: bytes) -> dict[str, np.ndarray]:
    """Read what the server writes: version 3, little-endian. A name that is missing is `arr_` and its place."""
    at = 4
    found: dict[str, np.ndarray] = {}

    def word() -> str:
        nonlocal at
        (size,) = unpack_from(">H", data, at)
        at += 2 + size
        return data[at - size : at].decode()

    def number(form: str = ">i", size: int = 4) -> Any:
        nonlocal at
        at += size
        return unpack_from(form, data, at - size)[0]

    for place in range(unpack_from(">i", data)[0]):
        assert (word(), number()) == ("NDAR", 3)
        name = word() if number(">B", 1) else f"arr_{place}"
        sparse, kind = word(), word()
        assert sparse == "DENSE"
        shape = [number(">q", 8) for _ in range(number())]
        letters = number()
        at += 2 * letters
        assert number(">B", 1) == ord("<")
        size = number()
        dtype = next(key for key, value in KINDS.items() if value == kind)
        found[name] = np.frombuffer(data, f"<{dtype}", size // np.dtype(dtype).itemsize, at).reshape(shape)
        at += size
    assert at == len(data)
    return found


def read_safetensors(data: bytes) -> dict[str, np.ndarray]:
    (size,) = unpack_from("<Q", data)
    header, rest = json.loads(data[8 : 8 + size]), data[8 + size :]
    return {
        name: np.frombuffer(rest[slice(*one["data_offsets"])], DTYPES[one["dtype"]]).reshape(one["shape"])
        for name, one in header.items()
    }


def read(form: str, body: bytes, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Read an answer in one of the forms; JSON and CSV of one tensor get its name."""
    if form == NPZ:
        return dict(np.load(io.BytesIO(body)))
    if form == SAFETENSORS:
        return read_safetensors(body)
    if form == CSV:
        rows = [[float(one) for one in row] for row in csv.reader(io.StringIO(body.decode()))]
        return {names[0]: np.array(rows, np.float32)}
    if form == JSON:
        said = json.loads(body)["predictions"]
        if len(names) == 1:
            return {names[0]: np.array(said, np.float32)}
        return {one["key"]: np.array(one["value"], np.float32) for one in said}
    return read_ndlist(body)


def is_of(form: str, expected: Arrays) -> Callable[[Mapping[str, str], bytes], None]:
    """Return a check of an answer: its content type, which JSON has none of, and its arrays under their names."""

    def check(headers: Mapping[str, str], body: bytes) -> None:
        assert headers.get("content-type", "") == ("" if form == JSON else form)
        found = read(form, body, list(expected))
        assert list(found) == list(expected)
        for name, array in expected.items():
            np.testing.assert_allclose(found[name].reshape(array.shape), array, rtol=1e-6)
            assert form == CSV or found[name].shape == array.shape

    return check
