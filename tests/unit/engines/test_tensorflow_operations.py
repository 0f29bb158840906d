"""What is found in a graph before it runs, by made-up graphs: what is reached, from where, and by what file."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from trivium.engines.graphs.tensorflow_operations import Starts, judge, node_of


@dataclass
class Value:
    """Stands for an AttrValue."""

    s: bytes = b""
    type: int = 0
    func: Any = None
    list: Any = field(default_factory=lambda: SimpleNamespace(s=[], func=[]))

    def WhichOneof(self, name: str) -> str:
        return "func" if self.func else "s"


def node(op: str, name: str, *inputs: str, **attributes: Value) -> Any:
    return SimpleNamespace(op=op, name=name, input=list(inputs), attr=attributes)


def call(name: str, function: str, *inputs: str) -> Any:
    return node("StatefulPartitionedCall", name, *inputs, f=Value(func=SimpleNamespace(name=function)))


def function(name: str, arguments: list[str], *nodes: Any) -> Any:
    signature = SimpleNamespace(name=name, input_arg=[SimpleNamespace(name=one) for one in arguments])
    return SimpleNamespace(signature=signature, node_def=nodes)


def graph(*nodes: Any, functions: tuple[Any, ...] = ()) -> Any:
    return SimpleNamespace(node=nodes, library=SimpleNamespace(function=functions))


ARGUMENTS = {
    "WriteFile": ["filename", "contents"],
    "SaveV2": ["prefix"],
    "RestoreV2": ["prefix"],
    "InitializeTableFromTextFileV2": ["table_handle", "filename"],
}
ATTRIBUTES = {"PrintV2": ["output_stream"], "DebugIdentity": ["debug_urls"], "Sampler": ["vocab_file"]}
KNOWN = (
    *("Const", "Add", "Identity", "PyFunc", "NoOp", "StatefulPartitionedCall", "Placeholder", "VarHandleOp"),
    *("ReadVariableOp", "AssignVariableOp", "ReaderReadV2", "WholeFileReaderV2"),
)


def definition(op: str) -> Any:
    if op not in (*ARGUMENTS, *ATTRIBUTES, *KNOWN):
        return None
    made = [[SimpleNamespace(name=one) for one in of.get(op, [])] for of in (ARGUMENTS, ATTRIBUTES)]
    return SimpleNamespace(input_arg=made[0], attr=made[1])


def test_unknown_operations_and_code_are_found_wherever_they_are() -> None:
    inner = function("f", [], node("Beam", "b"), node("PyFunc", "p"))
    found = judge(graph(node("f", "call"), functions=(inner,)), Starts(["call"]), definition)
    assert (found.unknown, found.code, found.outside) == ({"Beam": "b"}, {"PyFunc": "p"}, {})


@pytest.mark.parametrize(
    ("one", "is_outside"),
    [
        (node("WriteFile", "n"), True),
        (node("WholeFileReaderV2", "n"), True),
        (node("PrintV2", "n", output_stream=Value(b"file:///a")), True),
        (node("PrintV2", "n", output_stream=Value(b"stderr")), False),
        (node("Sampler", "n", vocab_file=Value(b"/etc/passwd")), True),
        (node("Sampler", "n", vocab_file=Value(b"")), False),
        (node("DebugIdentity", "n", debug_urls=Value(list=SimpleNamespace(s=[b"grpc://a"], func=[]))), True),
        (node("Add", "n"), False),
    ],
)
def test_what_reaches_outside_says_its_definition(one: Any, is_outside: bool) -> None:
    found = judge(graph(one, node("Const", "y")), Starts(["y"]), definition)
    assert bool(found.outside) is is_outside


def test_a_checkpoint_is_read_to_restore_and_written_by_nobody() -> None:
    saving = function("save", ["p"], node("SaveV2", "s", "p"))
    restoring = function("restore", ["p"], node("RestoreV2", "r", "p"))
    whole = graph(
        *(node("Placeholder", "file"), call("saves", "save", "file"), call("restores", "restore", "file")),
        node("Add", "y", "x", "^late"),
        node("NoOp", "late"),
        functions=(saving, restoring),
    )
    for starts, outside in (
        (Starts(["y:0"], ["late"], ["restores"]), {}),
        (Starts(["y", "restores:0"], [], []), {"RestoreV2": "r"}),
        (Starts(["y"], ["saves"], []), {"SaveV2": "s"}),
        (Starts(["y"], [], ["saves"]), {"SaveV2": "s"}),
        (Starts(), {"SaveV2": "s", "RestoreV2": "r"}),
    ):
        assert judge(whole, starts, definition).outside == outside


def tables(path: Any, *more: Any, functions: tuple[Any, ...] = ()) -> Any:
    fills = function("fill", ["t", "where"], node("InitializeTableFromTextFileV2", "i", "t", "where"))
    return graph(
        *(node("Const", "own"), node("Const", "other"), node("VarHandleOp", "v")),
        *(path, node("Identity", "table"), call("init", "fill", "table", "path"), node("Const", "y"), *more),
        functions=(fills, *functions),
    )


STARTS = Starts(["y"], ["init"], [], ["own:0"])
ASSIGNS_TEXT = {"dtype": Value(type=7)}


@pytest.mark.parametrize(
    ("whole", "is_outside"),
    [
        (tables(node("Identity", "path", "own")), False),
        (tables(node("Identity", "path", "other")), True),
        (tables(node("ReadVariableOp", "path", "v", "^a"), node("AssignVariableOp", "a", "v", "own")), False),
        (
            tables(
                node("ReadVariableOp", "path", "v"),
                node("AssignVariableOp", "a", "v", "own"),
                node("AssignVariableOp", "b", "v", "other"),
            ),
            True,
        ),
        (
            tables(
                node("ReadVariableOp", "path", "v"),
                functions=(function("g", ["h"], node("AssignVariableOp", "b", "h", "c", **ASSIGNS_TEXT)),),
            ),
            True,
        ),
        (tables(node("Identity", "path", "own"), call("again", "fill", "table", "other")), True),
        (tables(node("Add", "path", "own", "other")), True),
    ],
)
def test_a_table_is_filled_from_the_model_s_own_files_alone(whole: Any, is_outside: bool) -> None:
    assert bool(judge(whole, STARTS, definition).outside) is is_outside
    assert judge(whole, Starts(["init"], [], [], ["own"]), definition).outside, "a request may not do so"


def test_names_of_tensors() -> None:
    assert [node_of(one) for one in ("a", "a:1", "^a", "f/a:output:0")] == ["a", "a", "a", "f/a"]
