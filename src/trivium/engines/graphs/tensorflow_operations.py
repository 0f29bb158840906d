"""Judges the operations of a TensorFlow graph before any of them runs: which are unknown here, and which would run code
or reach for files.

TensorFlow's own word is that models are programs. What it can write and read is told by the definitions of its
operations: those that take the name of a file, a folder, a database or an address. Tables may be filled from the files
of a model's own folder, and variables from its checkpoint; all else is for who trusts the model. Pure.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

_CODE = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc", "XlaHostCompute", "_XlaHostComputeMlir"})
"""Call functions of the program that saved the model, which are not in its files."""

_PLACES = frozenset(
    (
        *("filename", "filenames", "file_name", "file_pattern", "vocab_file", "new_vocab_file"),
        *("old_vocab_file", "output_file_path", "chunk_file", "memory_region_name"),
        *("path", "snapshot_path", "ckpt_path", "log_dir_path", "directory", "logdir", "shard_dir"),
        *("prefix", "checkpoint_prefixes", "destination_prefix"),
        *("address", "server_address", "debug_urls", "db_uri", "data_source_name"),
    )
)
"""Arguments that name what lies outside of a graph."""

_OTHERS = frozenset(
    {
        *("MatchingFiles", "MatchingFilesDataset", "ExperimentalMatchingFilesDataset"),
        *("WholeFileReader", "WholeFileReaderV2", "TextLineReader", "TextLineReaderV2", "LMDBReader"),
        *("TFRecordReader", "TFRecordReaderV2", "FixedLengthRecordReader", "FixedLengthRecordReaderV2"),
        *("ImportEvent", "FileSystemSetConfiguration", "RemoteCall", "Send", "Recv", "_Send", "_Recv"),
    }
)
"""Reach outside of a graph by arguments of other names."""

_TABLES = frozenset({"InitializeTableFromTextFile", "InitializeTableFromTextFileV2"})
_RESTORES = frozenset({"RestoreV2", "Restore", "RestoreSlice"})
_SAVES = frozenset({"SaveV2", "Save", "SaveSlices", "MergeV2Checkpoints"})
_PRINTS = "PrintV2"
_ASSIGNS, _VARIABLE = "AssignVariableOp", "VarHandleOp"
_HANDS_ON = frozenset({"Identity", "ReadVariableOp"})
_PLAIN_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_STRING = 7


_Key = tuple[str, str]
"""A node: the function that it is in, empty for the graph itself, and its name."""


@dataclass(frozen=True, eq=False, slots=True)
class Starts:
    """Names of nodes that are run: for requests, to initialise, and to restore. `assets` are the tensors that are given
    the paths of the model's own files. Where no node is named a request may run each.
    """

    runs: Collection[str] = ()
    initialises: Collection[str] = ()
    restores: Collection[str] = ()
    assets: Collection[str] = ()


@dataclass(slots=True)
class Judged:
    """Operations found, each with the name of a node: unknown ones, those that run code, those that reach outside."""

    unknown: dict[str, str] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    outside: dict[str, str] = field(default_factory=dict)


def judge(graph: Any, starts: Starts, definition: Callable[[str], Any]) -> Judged:
    """Judge a GraphDef. `definition` returns the OpDef of an operation, None where there is none."""
    found, nodes = Judged(), _Nodes(graph)
    runs = nodes.reached(starts.runs) if starts.runs else set(nodes.all)
    begins = nodes.reached(starts.initialises)
    restores = nodes.reached(starts.restores)
    for key, node in nodes.all.items():
        known = definition(node.op)
        if known is None:
            if node.op not in nodes.functions:
                found.unknown.setdefault(node.op, node.name)
        elif node.op in _CODE:
            found.code.setdefault(node.op, node.name)
        elif node.op in _SAVES:
            if key in runs | begins | restores:
                found.outside.setdefault(node.op, node.name)
        elif node.op in _RESTORES:
            if key in runs | begins:
                found.outside.setdefault(node.op, node.name)
        elif node.op in _TABLES:
            if key in runs or not nodes.is_filled_from(key, starts.assets):
                found.outside.setdefault(node.op, node.name)
        elif _reaches_outside(node, known):
            found.outside.setdefault(node.op, node.name)
    return found


def node_of(tensor: str) -> str:
    """Return the node that a tensor is of, or that an input names: "^a" and "a:1" are of "a"."""
    return tensor.removeprefix("^").partition(":")[0]


def _reaches_outside(node: Any, definition: Any) -> bool:
    if node.op in _OTHERS or any(one.name in _PLACES for one in definition.input_arg):
        return True
    if node.op == _PRINTS:
        return bool(node.attr["output_stream"].s.startswith(b"file:"))
    told = [node.attr[one.name] for one in definition.attr if one.name in _PLACES and one.name in node.attr]
    return any(one.s or any(one.list.s) for one in told)


def _calls(node: Any) -> Iterator[str]:
    """Name the functions that a node may call."""
    yield node.op
    for value in node.attr.values():
        if value.WhichOneof("value") == "func":
            yield value.func.name
        else:
            yield from (one.name for one in value.list.func)


def _data(node: Any) -> list[str]:
    return [node_of(name) for name in node.input if not name.startswith("^")]


class _Nodes:
    """All nodes of a graph and of its functions."""

    def __init__(self, graph: Any) -> None:
        self.functions = {one.signature.name: one for one in graph.library.function}
        self.all: dict[_Key, Any] = {("", node.name): node for node in graph.node}
        for name, one in self.functions.items():
            self.all |= {(name, node.name): node for node in one.node_def}

    def reached(self, starts: Iterable[str]) -> set[_Key]:
        """Return all nodes that may run where these of the graph are: a function runs all that it has."""
        seen: set[_Key] = set()
        waiting = [("", node_of(name)) for name in starts]
        while waiting:
            key = waiting.pop()
            if key in seen or key not in self.all:
                continue
            seen.add(key)
            node = self.all[key]
            waiting += [(key[0], node_of(name)) for name in node.input]
            for name in _calls(node):
                if name in self.functions:
                    waiting += [(name, one.name) for one in self.functions[name].node_def]
        return seen

    def is_filled_from(self, table: _Key, assets: Collection[str]) -> bool:
        """Is a table filled from the model's own files alone, by whatever way their paths are handed on?"""
        if any(
            home and node.op == _ASSIGNS and node.attr["dtype"].type == _STRING
            for (home, _), node in self.all.items()
        ):
            return False
        owned = {node_of(one) for one in assets}
        waiting = [(table[0], name) for name in _data(self.all[table])[1:2]]
        seen: set[_Key] = set()
        while waiting:
            key = waiting.pop()
            if key in seen or (not key[0] and key[1] in owned):
                continue
            seen.add(key)
            further = self._sources(key)
            if further is None:
                return False
            waiting += further
        return True

    def _sources(self, key: _Key) -> list[_Key] | None:
        """Return where the value of a node or an argument comes from; None for what may be anybody's."""
        home, name = key
        if home:
            arguments = [one.name for one in self.functions[home].signature.input_arg]
            if name in arguments:
                return self._given(home, arguments.index(name))
        node = self.all.get(key)
        if node is None:
            return None
        if node.op == _VARIABLE and not home:
            return [
                (place, _data(each)[1])
                for (place, _), each in self.all.items()
                if each.op == _ASSIGNS and _data(each)[:1] == [name]
            ]
        return [(home, one) for one in _data(node)] if node.op in _HANDS_ON else None

    def _given(self, function: str, at: int) -> list[_Key] | None:
        """Return what the callers of a function give it as an argument; None where one calls it in another way."""
        found = []
        for (home, _), node in self.all.items():
            if function in _calls(node):
                given = _data(node)
                if node.op not in (*_PLAIN_CALLS, function) or at >= len(given):
                    return None
                found.append((home, given[at]))
        return found
