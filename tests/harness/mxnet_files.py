"""Files of MXNet written without it: graphs as its symbols are saved, and parameters as `mx.nd.save` writes them."""

import json
import struct
from collections.abc import Mapping, Sequence

import numpy as np

FLAGS = {"<f4": 0, "<f8": 1, "<f2": 2, "|u1": 3, "<i4": 4, "|i1": 5, "<i8": 6}
V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA


def array(values: np.ndarray, version: int = V2) -> bytes:
    """One array, as it is written by MXNet 0.9 to 0.11 (V1), up to 1.9, or with numpy's shapes (V3)."""
    storage = b"" if version == V1 else struct.pack("<i", 0)
    shape = struct.pack(f"<i{values.ndim}q", values.ndim, *values.shape)
    device = struct.pack("<2i", 1, 0)
    return (
        struct.pack("<I", version)
        + storage
        + shape
        + device
        + struct.pack("<i", FLAGS[values.dtype.str])
        + values.tobytes()
    )


def oldest(values: np.ndarray) -> bytes:
    """One array as MXNet 0.8 wrote it: the number of dims in place of a mark."""
    shape = struct.pack(f"<{1 + values.ndim}I", values.ndim, *values.shape)
    return shape + struct.pack("<3i", 1, 0, FLAGS[values.dtype.str]) + values.tobytes()


def file(arrays: Sequence[bytes], names: Sequence[str]) -> bytes:
    """A file of parameters."""
    named = b"".join(struct.pack("<Q", len(one.encode())) + one.encode() for one in names)
    lead = struct.pack("<3Q", 0x112, 0, len(arrays))
    return lead + b"".join(arrays) + struct.pack("<Q", len(names)) + named


def params(**values: np.ndarray) -> bytes:
    """A file of parameters, each of them an argument."""
    return file([array(one) for one in values.values()], [f"arg:{name}" for name in values])


def node(
    name: str, operation: str = "null", inputs: Sequence[int] = (), attrs: Mapping[str, str] | None = None
) -> dict[str, object]:
    """One node of a graph, whose inputs are the first outputs of others."""
    made: dict[str, object] = {"op": operation, "name": name, "inputs": [[at, 0, 0] for at in inputs]}
    return {**made, "attrs": dict(attrs)} if attrs else made


def symbol(*nodes: Mapping[str, object], heads: Sequence[Sequence[int]] = (), **more: object) -> bytes:
    """A graph; its output is the last node's, if none is named."""
    ends = heads or [[len(nodes) - 1, 0, 0]]
    return json.dumps({"nodes": nodes, "heads": ends, "arg_nodes": [], **more}).encode()


def dense(data_attrs: Mapping[str, str] | None = None) -> bytes:
    """A layer of 3 numbers in and 2 out, with a loss."""
    return symbol(
        node("data", attrs=data_attrs),
        node("w"),
        node("b"),
        node("fc", "FullyConnected", [0, 1, 2], {"num_hidden": "2"}),
        node("softmax_label"),
        node("softmax", "SoftmaxOutput", [3, 4]),
    )


def weights() -> bytes:
    """The parameters of `dense`."""
    return params(w=np.arange(6, dtype="<f4").reshape(2, 3), b=np.zeros(2, "<f4"))
