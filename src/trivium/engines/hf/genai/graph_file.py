"""Reads an OpenVINO model's graph, the file openvino_model.xml, as far as memory and requests depend on it.

Which inputs it has, how many numbers it keeps of each token, and of how many tokens it tells logits. Weights are not
read. Bytes in, values out: a document type, which could make a small file large, is refused.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from xml.parsers import expat

IDS, EMBEDS = "input_ids", "inputs_embeds"
LOGITS = "logits"


class GraphFault(ValueError):
    """Raised for bytes that are no such graph; says what is there."""


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """Holds what a graph says: the names of its `inputs`, the numbers `cached` of each token in `states`, and the size
    of its `vocabulary`, 0 where it does not say.
    """

    inputs: frozenset[str]
    states: int
    cached: int
    vocabulary: int


def read_graph(data: bytes) -> GraphFacts:
    """Return what a graph says. Raises GraphFault for bytes that are none."""
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = reader.refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise GraphFault(f"it is no XML: {error}") from error
    if reader.root != "net":
        raise GraphFault(f"its outermost element is '{reader.root[:40]}', and 'net' is expected")
    return GraphFacts(frozenset(reader.inputs), reader.states, reader.cached, reader.vocabulary)


class _Reader:
    """Takes the elements of a graph one by one."""

    def __init__(self) -> None:
        self.root = ""
        self.inputs: set[str] = set()
        self.states = self.cached = self.vocabulary = 0
        self._kind = self._name = ""
        self._dims: list[str] = []
        self._is_dim = False

    def refuse(self, *_: object) -> None:
        raise GraphFault("it declares a document type, which no such file has")

    def start(self, element: str, said: Mapping[str, str]) -> None:
        self.root = self.root or element
        if element == "layer":
            self._kind, self._name, self._dims = said.get("type", ""), said.get("name", ""), []
            self._name = said.get("output_names", self._name) if self._kind == "Result" else self._name
            if self._kind == "Parameter":
                self.inputs.add(self._name)
        elif element == "data" and self._kind == "ReadValue":
            self.states += 1
            self.cached += _numbers(said.get("variable_shape", ""))
        elif element == "dim" and self._kind == "Result":
            self._is_dim = True
            self._dims.append("")
        elif element == "layers":
            self._kind = ""

    def end(self, element: str) -> None:
        self._is_dim = False
        if element == "layer" and self._kind == "Result" and self._dims and LOGITS in self._name:
            last = self._dims[-1]
            self.vocabulary = int(last) if last.isdecimal() and len(last) < 10 else 0
        if element == "layer":
            self._kind = ""

    def text(self, text: str) -> None:
        if self._is_dim:
            self._dims[-1] += text


def _numbers(shape: str) -> int:
    """Return how many numbers of each token a state of this shape holds: `?,2,?,16`, with the batch first."""
    sizes = [size.strip() for size in shape.split(",")[1:]]
    found = [int(size) for size in sizes if size.isdecimal() and len(size) < 10]
    return math.prod(found) if found else 0
