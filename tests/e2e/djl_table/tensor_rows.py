"""Rows of section 9: what binary mode reads, in which form it answers, and what it refuses."""

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from tests.e2e.djl_table import tensor_forms as forms
from tests.e2e.djl_table.rows import SEED, Row
from tests.e2e.djl_table.tensor_forms import CSV, JSON, NDLIST, NPZ, SAFETENSORS, Arrays, is_of

NO_TENSORS = ("TranslateException", "Input is not a NDList data type")
NO_JSON = ("TranslateException", "Input is not a supported json format")
ACCEPTS = ("", NPZ, SAFETENSORS, NDLIST, JSON, CSV, "*/*", "tensor/npz;q=0.9")
CONTENT_TYPES = (
    "",
    NPZ,
    "tensor/npz; charset=utf-8",
    SAFETENSORS,
    NDLIST,
    "application/octet-stream",
    "text/plain",
)
ONE = {"x": np.array([[1, 2], [3, 4]], np.float32)}
TWO = {"a": np.array([[1, 2]], np.float32), "b": np.array([[10, 20]], np.float32)}


def lay_out(root: Path) -> Path:
    """Write the models: `doubled`, the same one `stacked` by a batch of four, one of two inputs and outputs, and one
    without names.
    """
    import torch

    x, y, a, b = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 2]) for name in "xyab")
    more = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 2]) for name in ("sum", "less")]
    double, both = (
        [helper.make_node("Add", ["x", "x"], ["y"])],
        [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Sub", ["a", "b"], ["less"])],
    )
    _save(root / "doubled", helper.make_graph(double, "doubled", [x], [y]))
    _save(root / "stacked", helper.make_graph(double, "doubled", [x], [y]))
    (root / "stacked" / "serving.properties").write_text("batch_size=4\nmax_batch_delay=1\n")
    _save(root / "both", helper.make_graph(both, "both", [a, b], more))
    (root / "traced").mkdir()
    module = torch.jit.trace(torch.nn.Identity(), torch.zeros(1, 2))
    module.save(str(root / "traced" / "traced.pt"))
    return root


def _save(folder: Path, graph: onnx.GraphProto) -> None:
    folder.mkdir(parents=True)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
        folder / f"{folder.name}.onnx",
    )


def tensor_rows() -> list[Row]:
    """Return the rows, in the order and with the values that the seed decides."""
    chance = random.Random(SEED + 9)
    found = [*_answers(chance), *_forms(), *_json(), *_csv(), *_models(), *_broken(chance), *_hostile()]
    found += [*_bad_json(), *_bad_csv(), *_unfit()]
    chance.shuffle(found)
    return found


def _row(section: str, send: bytes, status: int = 200, model: str = "doubled", **more: object) -> Row:
    return Row(section, "POST", f"/predictions/{model}", status, send, **more)  # type: ignore[arg-type]


def expected_form(accept: str, content_type: str) -> str:
    """The sheet's rule: parameters are taken off the content type alone."""
    asked = (accept, content_type.partition(";")[0].strip())
    for form in (NPZ, SAFETENSORS):
        if form in asked:
            return form
    if accept == CSV:
        return CSV
    return JSON if JSON in asked else NDLIST


def _fields(accept: str = "", content_type: str = "") -> dict[str, str]:
    fields = {"Accept": accept, "Content-Type": content_type}
    return {name: value for name, value in fields.items() if value}


def _answers(chance: random.Random) -> Iterator[Row]:
    """Every Accept with every content type, the body in any form: the header says nothing of it."""
    for accept in ACCEPTS:
        for content_type in CONTENT_TYPES:
            form = chance.choice(list(forms.WRITERS))
            array = np.array([[chance.randrange(100), chance.randrange(100)]], np.float32)
            yield _row(
                "9.2",
                forms.WRITERS[form]({"x": array}),
                fields=_fields(accept, content_type),
                holds=is_of(expected_form(accept, content_type), {"y": 2 * array}),
                note=form,
            )


def _forms() -> Iterator[Row]:
    """What each form may look like."""
    doubled = {"y": 2 * ONE["x"]}
    bodies: Mapping[str, bytes] = {
        "version 1": forms.ndlist({"arr_0": ONE["x"]}, version=1),
        "version 2": forms.ndlist(ONE, version=2),
        "by Python": forms.ndlist({"arr_0": ONE["x"]}, sparse="default"),
        "big-endian": forms.ndlist(ONE, order=">"),
        "another name": forms.ndlist({"other": ONE["x"]}),
        "deflated": forms.npz(ONE, True),
        "unnamed npz": forms.npz({"arr_0": ONE["x"]}),
        "columns": forms.npy({"x": np.asfortranarray(ONE["x"])}),
        "safetensors": forms.safetensors(ONE),
    }
    for note, body in bodies.items():
        if note == "columns":
            yield _row("9.4", body, 400, error=NO_TENSORS, note=note)
            continue
        yield _row("9.3", body, holds=is_of(NDLIST, doubled), note=note)
    form = b'--b\r\nContent-Disposition: form-data; name="data"; filename="x.npz"\r\n\r\n%b\r\n--b--\r\n'
    yield _row(
        "9.1",
        form % forms.npz(ONE),
        fields=_fields("", "multipart/form-data; boundary=b"),
        holds=is_of(NDLIST, doubled),
        note="a form",
    )


def _json() -> Iterator[Row]:
    """Nested lists, bare or under a key, whatever is asked for."""
    rows = ONE["x"].tolist()
    documents = (rows, {"inputs": rows}, {"instances": rows}, [[1.5, -2e3]])
    for document in documents:
        given = document if isinstance(document, list) else next(iter(document.values()))
        doubled = {"y": 2 * np.array(given, np.float32).reshape(-1, 2)}
        for accept, content_type in (
            ("", JSON),
            (NPZ, f"{JSON}; charset=utf-8"),
            (CSV, JSON),
            (NDLIST, JSON),
        ):
            form = expected_form(accept, content_type)
            body = json.dumps(document).encode()
            yield _row(
                "9.1",
                body,
                fields=_fields(accept, content_type),
                holds=is_of(form, doubled),
                note=str(document),
            )
    for document in ([1, 2], {"inputs": [1, 2]}):
        doubled = {"y": np.array([2, 4], np.float32)}
        body = json.dumps(document).encode()
        yield _row(
            "9.5",
            body,
            model="stacked",
            fields=_fields("", JSON),
            holds=is_of(JSON, doubled),
            note=str(document),
        )
    yield _row("9.1", b"[[1, 2]]", 400, error=NO_TENSORS, note="no JSON without the header")


def _csv() -> Iterator[Row]:
    for body in (b"1,2\n3,4\n", b"1,2\r\n3,4", b" 1, 2\n3,4e0\n\n"):
        for accept in ("", CSV, JSON, NPZ):
            form = expected_form(accept, CSV)
            yield _row(
                "9.1",
                body,
                fields=_fields(accept, CSV),
                holds=is_of(form, {"y": 2 * ONE["x"]}),
                note=str(body),
            )


def _models() -> Iterator[Row]:
    """Several tensors, names that a file does not have, and batches."""
    both = {"sum": TWO["a"] + TWO["b"], "less": TWO["a"] - TWO["b"]}
    unnamed = dict(zip(("arr_0", "arr_1"), TWO.values(), strict=True))
    backwards = dict(reversed(TWO.items()))
    for form in (NDLIST, NPZ, SAFETENSORS):
        for note, arrays in (("named", TWO), ("unnamed", unnamed), ("backwards", backwards)):
            body = forms.WRITERS[form](arrays)
            for accept in ("", NPZ, JSON, SAFETENSORS):
                wanted = expected_form(accept, "")
                yield _row(
                    "9.2",
                    body,
                    model="both",
                    fields=_fields(accept),
                    holds=is_of(wanted, both),
                    note=f"{form} {note}",
                )
        for accept in ("", NPZ, SAFETENSORS, JSON):
            wanted = is_of(expected_form(accept, ""), {"arr_0": ONE["x"]})
            body = forms.WRITERS[form]({"arr_0": ONE["x"]})
            yield _row("9.4", body, model="traced", fields=_fields(accept), holds=wanted, note=form)
    for shape in ((2,),):
        array = np.arange(2, dtype=np.float32).reshape(shape)
        body = forms.ndlist({"x": array})
        yield _row("9.5", body, model="stacked", holds=is_of(NDLIST, {"y": 2 * array}), note=str(shape))


# -- what is refused ---------------------------------------------------------------------------------------


def _broken(chance: random.Random) -> Iterator[Row]:
    """Each form, cut off at places that the seed chooses."""
    for form, write in forms.WRITERS.items():
        body = write(ONE)
        for at in sorted(chance.sample(range(9, len(body)), 6)):
            yield _row("9.1", body[:at], 400, error=NO_TENSORS, note=f"{form} cut at {at}")


def _hostile() -> Iterator[Row]:
    whole = forms.ndlist(ONE)
    records: Arrays = {"x": np.array([object()])}
    bodies: Mapping[str, bytes] = {
        "nothing": b"",
        "few bytes": b"12345678",
        "text": b"not a list of tensors",
        "a picture": b"\x89PNG\r\n\x1a\n" + bytes(40),
        "no zip": b"PK\3\4 garbage garbage garbage",
        "no npy": b"\x93NUMPY\1\0\xff\xff{",
        "a pickle": forms.npy(records),
        "a pickle in a zip": forms.npz(records),
        "complex": forms.ndlist(ONE, kind="COMPLEX64"),
        "no datatype": forms.ndlist(ONE, kind="FLOAT12"),
        "version 4": forms.ndlist(ONE, version=4),
        "many arrays": forms.ndlist(ONE, count=2**31 - 1),
        "fewer than none": forms.ndlist(ONE, count=-1),
        "a huge shape": whole.replace((2).to_bytes(8, "big"), (2**62).to_bytes(8, "big")),
        "a shape below zero": whole.replace((2).to_bytes(8, "big"), b"\xff" * 8),
        "more behind": whole + b"more",
        "a bad dtype": forms.safetensors(ONE, dtype="F12"),
        "a span outside": forms.safetensors(ONE, data_offsets=[0, 2**40]),
        "a span that is none": forms.safetensors(ONE, data_offsets=[4, 0]),
        "a long header": (2**50).to_bytes(8, "little") + b"{" + bytes(20),
    }
    for note, body in bodies.items():
        yield _row("9.1", body, 400, error=NO_TENSORS, note=note)


def _bad_json() -> Iterator[Row]:
    deep = "[" * 5000 + "]" * 5000
    words = (
        "",
        "{",
        "null",
        "true",
        '"text"',
        "5",
        "[",
        '["a"]',
        "[[1],[2,3]]",
        '{"a":1}',
        '{"inputs":5}',
        "[[1,2]",
    )
    for text in (*words, '{"inputs":{"a":1}}', '{"instances":"no"}', "[null]", "[[1,2],3]", "{}", deep):
        yield _row(
            "9.1", text.encode(), 400, fields=_fields("", JSON), error=NO_JSON, note=f"JSON {text[:20]}"
        )
    yield _row("9.1", b"[[[1,2]]]", 400, fields=_fields("", JSON), note="JSON of three dimensions")
    yield _row("9.1", b"[\xff\xfe]", 400, fields=_fields("", JSON), error=NO_JSON, note="no UTF-8")


def _bad_csv() -> Iterator[Row]:
    for body in (b"", b"a,b", b"1,2\n3", b"1,,2", b"1;2", b"\xff\xfe", b"1,2\nx"):
        yield _row("9.1", body, 400, fields=_fields("", CSV), error=NO_TENSORS, note=f"CSV {body!r}")


def _unfit() -> Iterator[Row]:
    """Tensors that are whole, but not the model's."""
    wide, whole = np.zeros((1, 3), np.float32), np.array([[1, 2]], np.int64)
    yield _row("9.1", forms.ndlist({"x": wide}), 400, note="too wide")
    yield _row("9.1", forms.ndlist({"x": whole}), 400, note="whole numbers")
    yield _row("9.1", forms.npz({"x": ONE["x"], "z": ONE["x"]}), 400, note="one too many")
    yield _row("9.1", forms.ndlist({}), 400, note="no tensor")
    yield _row("9.1", b"PK\5\6" + bytes(18), 400, note="zip of nothing")
    yield _row("9.5", forms.ndlist({"x": wide[0]}), 400, model="stacked", note="too wide for the batch")
