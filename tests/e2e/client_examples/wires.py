"""NVIDIA's two client modules behind one face, as the examples use them, and the numbers that they all compute with.

Knows what a call is named on each wire, and no model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tritonclient.grpc as over_grpc
import tritonclient.http as over_http
from tests.harness.triton_tensors import Array

COUNTING = np.arange(16, dtype=np.int32).reshape(1, 16)
ONES = np.ones((1, 16), np.int32)
TENSORS = ("INPUT0", "INPUT1"), ("OUTPUT0", "OUTPUT1")


@dataclass(frozen=True)
class Wire:
    """HTTP or gRPC, and where the server is."""

    module: Any
    address: str

    @property
    def is_grpc(self) -> bool:
        """The other one is HTTP."""
        return self.module is over_grpc

    def client(self, **options: Any) -> Any:
        """A client; it is closed by `with`."""
        return self.module.InferenceServerClient(self.address, **options)

    def given(self, name: str, array: Array, datatype: str, is_binary: bool = True) -> Any:
        """An input."""
        tensor = self.module.InferInput(name, list(array.shape), datatype)
        form = {} if self.is_grpc else {"binary_data": is_binary}
        tensor.set_data_from_numpy(array, **form)
        return tensor

    def wanted(self, name: str, is_binary: bool = True, **options: Any) -> Any:
        """An output asked for."""
        form = {} if self.is_grpc else {"binary_data": is_binary}
        return self.module.InferRequestedOutput(name, **form, **options)

    def pair(self, a: Array = COUNTING, b: Array = ONES, datatype: str = "INT32") -> list[Any]:
        """The inputs of a model that adds and subtracts, over HTTP the first one in JSON."""
        return [self.given("INPUT0", a, datatype, False), self.given("INPUT1", b, datatype)]

    def both(self) -> list[Any]:
        """Its outputs, over HTTP the second one in JSON."""
        return [self.wanted("OUTPUT0"), self.wanted("OUTPUT1", False)]

    def document(self, answer: Any) -> Any:
        """Metadata, a configuration or statistics as a dictionary, with the names of JSON."""
        if not self.is_grpc:
            return answer
        from google.protobuf.json_format import MessageToDict

        return MessageToDict(answer, preserving_proto_field_name=True)


def check(result: Any, a: Array = COUNTING, b: Array = ONES) -> None:
    """Sum and difference are right."""
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), a - b)


def texts(numbers: Sequence[int]) -> Array:
    """Numbers in words, as `simple_string` takes them."""
    return np.array([str(number).encode() for number in numbers], object)


def wires(http: str, grpc: str) -> dict[str, Wire]:
    """Both, by name."""
    return {"http": Wire(over_http, http), "grpc": Wire(over_grpc, grpc)}
