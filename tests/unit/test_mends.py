"""What a hint advises works: the changes that hints name are carried out on the mutants of every format's tests."""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest
from tests.fixtures import models
from tests.harness import djl_folders
from tests.harness.mending import mended
from tests.unit.cli.test_check_mutants import FILES, SERVED, misspelt, slips
from tests.unit.servers.djl.folder.test_djl_workflows import FLOW
from tests.unit.servers.torchserve.command.test_check_model_config import JUDGED
from tests.unit.servers.torchserve.command.test_check_model_config import slips as yaml_slips
from tests.unit.servers.triton.words.test_mutants import FILES as CONFIGS
from tests.unit.servers.triton.words.test_mutants import GPUS, mutants

from trivium.codecs.java_properties import read as read_properties
from trivium.engines.onnx.engine import ENGINE
from trivium.servers.djl.command import sources as djl_sources
from trivium.servers.djl.command.keys import CONFIG as DJL_CONFIG
from trivium.servers.djl.words.engines import DjlEngine
from trivium.servers.djl.words.values import FORMS
from trivium.servers.djl.words.workflow_documents import read_text
from trivium.servers.djl.words.workflows import read_workflow
from trivium.servers.torchserve.command import sources as torchserve_sources
from trivium.servers.torchserve.command.properties_table import CONFIG as TORCHSERVE_CONFIG
from trivium.servers.torchserve.words.model_config import read_model_config
from trivium.servers.triton.repository.repository import FORMAT
from trivium.servers.triton.words.checks import check
from trivium.servers.triton.words.reader import read_config
from trivium.settings.kinds import OneOf, Whole
from trivium.settings.sources import SettingsTable
from trivium.types.errors import ConfigError
from trivium.types.findings import Finding, Severity
from trivium.types.spec import Defaults

Look = Callable[[str], Sequence[Finding]]
MOST = 12
"""Hints that one mutant takes at most until nothing is advised any more."""


def followed(text: str, look: Look) -> int:
    """Follow every hint that names a change, until none does. Return how many there were."""
    seen = {text}
    for followed_so_far in range(MOST):
        findings = look(text)
        advised = next((one for one in findings if one.mends), None)
        if advised is None:
            return followed_so_far
        after = mended(text, advised)
        assert after not in seen, f"the hints go round: {advised}"
        left = look(after)
        assert str(advised) not in map(str, left), f"it changes nothing: {advised}"
        fresh = [one for one in left if one.severity is Severity.ERROR and one.line == advised.line]
        known = {(one.key, one.found) for one in findings}
        refused = [one for one in fresh if not one.mends and (one.key, one.found) not in known]
        is_own = any((change.value or "?").strip('"') in text for change in advised.mends)
        assert is_own or not refused, f"{advised}\nis refused by\n{refused[0]}"
        seen.add(after)
        text = after
    raise AssertionError(f"after {MOST} hints there is another: {advised}")


def all_followed(mutants: Iterable[str], look: Look) -> int:
    """Follow the hints of each mutant; all that is wrong with them at once."""
    total, wrong = 0, list[str]()
    for one in mutants:
        try:
            total += followed(one, look)
        except AssertionError as error:
            wrong.append(f"{one[:300]}\n{error}")
    assert not wrong, f"{len(wrong)}\n" + "\n\n".join(wrong[:20])
    return total


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 16])
@pytest.mark.parametrize("gpus", [GPUS, 0])
def test_a_configuration_of_triton(gpus: int, step: int) -> None:
    made = [mutant.text for text in CONFIGS for mutant in mutants(text)][::step]
    assert all_followed(made, lambda text: check(read_config("config.pbtxt", text.encode()), gpus)) > 200


CONTRADICTIONS = (
    ("INT32", "[ 4 ]"),
    ("FP32", "[ 5 ]"),
    ("FP32", "[ 1, 4 ]"),
    ("FP32", "[ -1, 4 ]"),
    ("FP32", "4"),
)


@pytest.mark.parametrize("shape", [("n", 4), ("n",), (4,), (2, 4), ()], ids=str)
@pytest.mark.parametrize("rows", [0, 4])
def test_a_configuration_and_its_model_file(shape: tuple[int | str, ...], rows: int, tmp_path: Path) -> None:
    """Of whatever type and shape the tensors are configured, the hints lead to what loads."""
    path = models.bare_add(tmp_path, "m", shape)
    numbers = count()

    last = list[Finding]()

    def look(text: str) -> Sequence[Finding]:
        last[:] = looked(text)
        return tuple(last)

    def looked(text: str) -> Sequence[Finding]:
        folder = tmp_path / str(next(numbers)) / "m"
        (folder / "1").mkdir(parents=True)
        shutil.copy(path, folder / "1" / "model.onnx")
        (folder / "config.pbtxt").write_text(text)
        reading = FORMAT.read(folder, Defaults())
        try:
            specs = [FORMAT.finish(spec, ENGINE.facts(spec)) for spec in reading.specs]
        except ConfigError as error:
            return error.findings
        assert specs or any(one.mends for model in reading.unreadable for one in model.findings)
        return [one for model in reading.unreadable for one in model.findings]

    total = 0
    for kind, dims in CONTRADICTIONS:
        ends = "".join(
            f'{section} {{\nname: "{name}"\ndata_type: TYPE_{kind}\ndims: {dims}\n}}\n'
            for section, name in (("input", "a"), ("input", "b"), ("output", "sum"))
        )
        total += followed(f'backend: "onnxruntime"\nmax_batch_size: {rows}\n{ends}', look)
        assert last == []
    assert total > 3


def look_into_djl(root: Path, engine: DjlEngine) -> Look:
    numbers = count()

    def look(text: str) -> Sequence[Finding]:
        folder = djl_folders.make(root, f"m{next(numbers)}", text, **FILES[engine.name])
        reading = djl_folders.FORMAT.read(folder, djl_folders.DEFAULTS)
        findings = [one for model in reading.unreadable for one in model.findings]
        return findings + [one for spec in reading.specs for one in spec.reports]

    return look


FITTING = {
    "option.entryPoint": "model.py",
    "option.handler": "handle",
    "option.modelName": "m",
    "option.modeName": "m",
    "option.env": "A=1",
    "load_on_devices": "cpu",
    "option.pythonExecutable": sys.executable,
}
"""Values of keys of a model that have no form of their own."""


def fitting(engine: DjlEngine, key: str) -> str:
    kind = FORMS.get(key)
    words = kind.words if isinstance(kind, OneOf) else ()
    return FITTING.get(key, "none" if "none" in words else words[0] if words else "1")


REFUSED_VALUES = ("translatorFactory", "translator", "application", "task", "blockFactory")
"""Keys that take no value which a test could write for every engine."""


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 4])
@pytest.mark.parametrize("engine", SERVED, ids=lambda each: each.name)
def test_a_model_of_djl(engine: DjlEngine, step: int, tmp_path: Path) -> None:
    start = f"engine={engine.name}\n"
    made = [
        f"{start}{slip}={fitting(engine, key)}"
        for slip, key in misspelt(engine.keys).items()
        if key not in ("engine", *REFUSED_VALUES)
    ][::step]
    for key, form in FORMS.items():
        if key in engine.keys:
            made += [f"{start}{key}={value}" for value in ("maybe", "yes", "ture")][::step]
            made += (
                [f"{start}{key}={number}" for number in (form.most + 1, 0)] if isinstance(form, Whole) else []
            )
    made += [f"engine={word}" for word in ("Pyton", "OnnxRuntim", "pytorch", "Torch")]
    made += [f"{start}translatorFactory=ai.djl.modality.cv.translator.ImageClasificationTranslatorFactory"]
    made += [f"{start}option.entryPoint=modle.py", f"{start}option.handler=handel"]
    assert all_followed(made, look_into_djl(tmp_path, engine)) > 30


_SNAPSHOT = '{"models": {"m": {"1.0": {"marName": "m.mar"}}}}'


def of_table(table: SettingsTable) -> Iterator[str]:
    """Lines with the name of a setting misspelt, and a value that it takes."""
    values = ("true", "1", "http://127.0.0.1:8080", "cpu", "m=m.mar", "body", _SNAPSHOT)
    for row in table.rows.values():
        value = next((one for one in (str(row.default), *values) if one and not row.fault(one)), "1")
        yield from (f"{slip}={value}" for slip in slips(row.name) if slip not in table.rows)


def test_a_configuration_of_djl() -> None:
    def look(text: str) -> Sequence[Finding]:
        return djl_sources.gather(read_properties("config.properties", text.encode()), [], "", {}).findings

    assert all_followed(of_table(DJL_CONFIG), look) > 60


def test_a_configuration_of_torchserve() -> None:
    def look(text: str) -> Sequence[Finding]:
        return torchserve_sources.gather(read_properties("config.properties", text.encode()), {}, {}).findings

    assert all_followed(of_table(TORCHSERVE_CONFIG), look) > 200


def test_a_model_of_torchserve() -> None:
    made = [f"{slip}: 1\n" for key in JUDGED for slip in yaml_slips(key)]
    look = lambda text: read_model_config("model-config.yaml", text.encode()).findings  # noqa: E731
    assert all_followed(made, look) > 50


WORKFLOW = {
    **FLOW,
    "batchSize": 4,
    "models": {"m": {"modelUrl": "file:///m", "batchSize": 3, "application": "x"}},
    "configs": {"post": {}, "adapters": {"a": {"model": "m", "src": "/a"}}},
    "workflow": {"mid": ["adapter", "a", ["pre", "in"]], "out": ["post", "mid"]},
}


def test_a_workflow() -> None:
    def look(text: str) -> Sequence[Finding]:
        try:
            read = read_text("workflow.json", text.encode(), {})
            read_workflow(read, "", "", "flow")
        except ConfigError as error:
            return error.findings
        return read.findings

    whole = json.dumps(WORKFLOW)
    assert look(whole) == []
    made = []
    for match in re.finditer(r'"([A-Za-z]+)"', whole):
        word = match[1]
        for slip in slips(word) if len(word) > 2 else (word + word[-1],):
            made.append(f"{whole[: match.start()]}{json.dumps(slip)}{whole[match.end() :]}")
    made += [json.dumps({**WORKFLOW, "workflow": {"out": "in"}})]
    assert all_followed(made, look) > 50
