"""What the hints of a typed handler say, and what is refused of them, with the line."""

from pathlib import Path
from typing import Any

import pytest
from tests.harness.typed_child import HEAD, TypedChild

from trivium_worker.wire.values import Failure

FIRST = HEAD.count("\n") + 1
"""The line that a test's own code begins in."""

INPUTS = {
    "str": ["BYTES", [1]],
    "int": ["INT64", [1]],
    "float": ["FP64", [1]],
    "bool": ["BOOL", [1]],
    "bytes": ["BYTES", [1]],
    "list[str]": ["BYTES", [-1]],
    "list[list[float]]": ["FP64", [-1, -1]],
    "list[bytes]": ["BYTES", [-1]],
    'Literal["a", "b"]': ["BYTES", [1]],
    "dict[str, float]": ["BYTES", [1]],
    "Box": ["BYTES", [1]],
    "list[Box]": ["BYTES", [-1]],
    "Row": ["BYTES", [1]],
    'Annotated[np.ndarray, tensor("FP32", [-1, 3])]': ["FP32", [-1, 3]],
    'Annotated[np.ndarray, tensor("BYTES", [2])]': ["BYTES", [2]],
    'Annotated[str, "said for people"]': ["BYTES", [1]],
}
CLASSES = """
@dataclass
class Box:
    x: float
    names: list[str] = field(default_factory=list)
    more: Optional[dict[str, Any]] = None

class Row(TypedDict, total=False):
    n: int
"""


@pytest.mark.parametrize("hint", INPUTS)
def test_a_hint_is_a_tensor(hint: str, tmp_path: Path) -> None:
    found = TypedChild(tmp_path).document(
        f"{CLASSES}\nclass M:\n    def predict(self, x: {hint}) -> {hint}: ...\n", "M"
    )
    assert found["inputs"] == [["x", *INPUTS[hint], False]]
    assert found["outputs"] == [["output", *INPUTS[hint]]]


def test_a_default_makes_it_optional_and_null_is_one(tmp_path: Path) -> None:
    code = "class M:\n    def predict(self, x: str, k: int = 3, w: Optional[str] = None) -> str: ...\n"
    found = TypedChild(tmp_path).document(code)
    assert [(name, is_optional) for name, *_, is_optional in found["inputs"]] == [
        ("x", False),
        ("k", True),
        ("w", True),
    ]
    assert found["request"]["required"] == ["x"]
    assert found["example"] == {"x": "text"}


def test_hints_may_be_texts(tmp_path: Path) -> None:
    child = TypedChild(tmp_path)
    (tmp_path / "typed_app.py").write_text(
        "from __future__ import annotations\nclass M:\n    def predict(self, x: list[int]) -> list[int]: ...\n"
    )
    from trivium_worker.dialects.typed.handler import load_class, signature_of

    found = signature_of(load_class(str(child.root), "typed_app.py", "")).document()
    assert found["inputs"] == [["x", "INT64", [-1], False]]


def test_a_record_with_arrays_is_an_output_for_each_field(tmp_path: Path) -> None:
    code = (
        "class Found(TypedDict):\n    boxes: Annotated[np.ndarray, tensor('FP32', [-1, 4])]\n    labels: list[str]\n"
        "class M:\n    def predict(self, image: bytes) -> Found: ...\n"
    )
    assert TypedChild(tmp_path).document(code, "M")["outputs"] == [
        ["boxes", "FP32", [-1, 4]],
        ["labels", "BYTES", [-1]],
    ]


def test_a_batch_has_its_rows_first(tmp_path: Path) -> None:
    code = "class M:\n    @batched(4, 0.01)\n    def predict(self, x: list[list[float]]) -> list[str]: ...\n"
    found = TypedChild(tmp_path).document(code)
    assert (found["is_batched"], found["max_rows"], found["max_delay"]) == (True, 4, 0.01)
    assert (found["inputs"], found["outputs"]) == (
        [["x", "FP64", [-1, -1], False]],
        [["output", "BYTES", [-1]]],
    )
    assert found["request"] == {"type": "array", "items": {"type": "number"}}, "a body is one item"


def test_streams_and_async_functions(tmp_path: Path) -> None:
    child = TypedChild(tmp_path)
    plain = child.document("class M:\n    def predict(self, x: int) -> Iterator[str]: yield ''\n")
    assert (plain["streams"], plain["in_flight"]) == (True, 0)
    awaited = child.document(
        "class M:\n    @concurrent(7)\n    async def predict(self, x: int) -> int: ...\n"
    )
    assert (awaited["streams"], awaited["in_flight"]) == (False, 7)
    both = child.document("class M:\n    async def predict(self, x: int) -> AsyncIterator[int]: yield 1\n")
    assert (both["streams"], both["in_flight"]) == (True, 64)


WRONG: dict[str, tuple[str, int, str]] = {
    "a path, as Cog has files": (
        "from pathlib import Path\nclass M:\n    def predict(self, image: Path, scale: float = 1.5) -> Path: ...",
        3,
        "bytes, and open them by io.BytesIO",
    ),
    "an array without a mark": (
        "class M:\n    def predict(self,\n        x: np.ndarray) -> str: ...",
        3,
        "hint ndarray",
    ),
    "a bare dict": ("class M:\n    def predict(self, x: dict) -> str: ...", 2, "dict[str, float]"),
    "a tuple": ("class M:\n    def predict(self, x: str) -> tuple[int, int]: ...", 2, "hint tuple[int, int]"),
    "no hint": (
        "class M:\n    def predict(self, x) -> str: ...",
        2,
        "the parameter x of M.predict has no hint",
    ),
    "no hint of the return": ("class M:\n    def predict(self, x: str): ...", 2, "-> str"),
    "several at will": ("class M:\n    def predict(self, *x: str) -> str: ...", 2, "cannot be named"),
    "nothing taken": ("class M:\n    def predict(self) -> str: ...", 2, "takes nothing"),
    "a class of its own": ("class P: pass\nclass M:\n    def predict(self, x: P) -> str: ...", 3, "hint P"),
    "a name that is none": ('class M:\n    def predict(self, x: "Nope") -> str: ...', 2, "Nope"),
    "a union": ("class M:\n    def predict(self, x: int | str) -> str: ...", 2, "int | str"),
    "null without a default": (
        "class M:\n    def predict(self, x: Optional[int]) -> str: ...",
        2,
        "a default",
    ),
    "a field": (
        "@dataclass\nclass R:\n    a: int\n    b: complex\nclass M:\n    def predict(self, x: R) -> str: ...",
        4,
        "b of R",
    ),
    "a circle": (
        '@dataclass\nclass R:\n    a: "list[R]"\nclass M:\n    def predict(self, x: R) -> str: ...',
        3,
        "itself",
    ),
    "a datatype": (
        'class M:\n    def predict(self, x: Annotated[np.ndarray, tensor("FLOAT", [1])]) -> str: ...',
        2,
        "FLOAT",
    ),
    "a list of arrays": (
        'class M:\n    def predict(self, x: list[Annotated[np.ndarray, tensor("FP32", [1])]]) -> str: ...',
        2,
        "inside",
    ),
    "a yield that is no stream": (
        "class M:\n    def predict(self, x: str) -> str:\n        yield x",
        2,
        "Iterator",
    ),
    "a batch of one": (
        "class M:\n    @batched(4)\n    def predict(self, x: str) -> list[str]: ...",
        3,
        "no rows",
    ),
    "a batch with a default": (
        "class M:\n    @batched(4)\n    def predict(self, x: list[str] = []) -> list[str]: ...",
        3,
        "default",
    ),
    "a batch that answers one": (
        "class M:\n    @batched(4)\n    def predict(self, x: list[str]) -> str: ...",
        3,
        "no rows",
    ),
    "a batch that is async": (
        "class M:\n    @batched(4)\n    async def predict(self, x: list[str]) -> list[str]: ...",
        3,
        "async",
    ),
    "a batch that streams": (
        "class M:\n    @batched(4)\n    def predict(self, x: list[str]) -> Iterator[str]: yield x",
        3,
        "streams",
    ),
    "concurrent, not async": (
        "class M:\n    @concurrent(4)\n    def predict(self, x: str) -> str: ...",
        3,
        "async def",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    code, line, said = WRONG[name]
    with pytest.raises(Failure) as refused:
        TypedChild(tmp_path).document(code + "\n", "M")
    assert refused.value.code == "load failed"
    assert refused.value.message.startswith(f"{tmp_path}/typed_app.py, line {FIRST + line - 1}: "), (
        refused.value.message
    )
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [
        ("x = 1", "", "no classes"),
        ("class A:\n    def predict(self): ...\nclass B(A): ...", "", "2 classes"),
        ("class A:\n    def predict(self): ...", "B", "B is not there"),
        ("class A: ...", "A", "A is no class with a method predict"),
        ("class A:\n    predict = 3", "A", "is no function"),
    ],
)
def test_the_class_that_is_meant_is_found_or_named(code: str, name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(Failure, match=said):
        TypedChild(tmp_path).document(code + "\n", name)


def test_a_static_predict_and_private_classes(tmp_path: Path) -> None:
    code = (
        "class _Base:\n    def predict(self, x: int) -> int: ...\n"
        "class M:\n    @staticmethod\n    def predict(x: str) -> str: ...\n"
    )
    found: dict[str, Any] = TypedChild(tmp_path).document(code)
    assert found["inputs"] == [["x", "BYTES", [1], False]]
