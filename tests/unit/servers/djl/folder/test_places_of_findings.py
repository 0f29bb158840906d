"""What is wrong is named at the user's own file, line and key, as they are spelt there: mutants of whole corpora."""

import json
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest
from tests.harness import djl_folders, language_models
from tests.unit.cli.test_check_mutants import FILES, SERVED, slips
from tests.unit.servers.djl.folder.test_djl_workflows import FLOW

from trivium.catalogue import CATALOGUE
from trivium.servers.djl.words.engines import LANGUAGE_MODEL, DjlEngine
from trivium.types.errors import ServeError
from trivium.types.findings import Finding

BAD = ("maybe", "0", "-1", "99999999999", "a/b", "https://x/y", "../up", "s3://b/c")
"""Values none of which most keys take."""


def findings_of(folder: Path) -> Sequence[Finding]:
    reading = djl_folders.FORMAT.read(folder, djl_folders.DEFAULTS)
    found = [one for model in reading.unreadable for one in model.findings]
    return found + [one for spec in reading.specs for one in spec.reports]


def check_places(folder: Path, lines: Sequence[str]) -> int:
    """Each finding stands at a line of serving.properties, and its key is what that line begins with."""
    findings = findings_of(folder)
    for one in findings:
        assert one.file == str(folder / "serving.properties"), one
        assert one.line is not None, one
        assert lines[one.line - 1].partition("=")[0] == one.key, one
    return len(findings)


@pytest.mark.parametrize("engine", SERVED, ids=lambda each: each.name)
def test_settings_of_a_model(engine: DjlEngine, tmp_path: Path) -> None:
    numbers, found = count(), 0
    for key in engine.keys:
        for value in BAD:
            lines = (
                [f"{key}={value}"] if key == "engine" else ["# c", f"engine={engine.name}", f"{key}={value}"]
            )
            folder = djl_folders.make(tmp_path / str(next(numbers)), "m", *lines, **FILES[engine.name])
            found += check_places(folder, lines)
    assert found > 100


def test_settings_of_a_language_model(tmp_path: Path) -> None:
    model, found = language_models.write(tmp_path / "lm", "llama"), 0
    for number, (key, value) in enumerate((key, value) for key in LANGUAGE_MODEL.keys for value in BAD):
        head = ["# c"] if key == "option.rolling_batch" else ["# c", "option.rolling_batch=auto"]
        lines = [*head, f"{key}={value}"]
        folder = djl_folders.make(tmp_path / str(number), "m", *lines)
        for file in model.iterdir():
            (folder / file.name).symlink_to(file)
        found += check_places(folder, lines)
    assert found > 100


@pytest.mark.parametrize("key", ["option.modelName", "option.modeName"])
def test_a_file_s_name_under_either_key(key: str, tmp_path: Path) -> None:
    lines = ["engine=PyTorch", f"{key}=other"]
    folder = djl_folders.make(tmp_path, "m", *lines, m_pt="")
    assert check_places(folder, lines) == 1
    (finding,) = findings_of(folder)
    assert f"set {key}=m" in finding.hint


@pytest.mark.parametrize("key", ["option.max_model_len", "option.n_positions"])
def test_what_the_weights_cannot_take_is_blamed_on_the_setting(key: str, tmp_path: Path) -> None:
    folder = language_models.write(tmp_path / "lm", "llama")
    (folder / "serving.properties").write_text(f"# c\noption.rolling_batch=auto\n{key}=100000\n")
    spec = djl_folders.one(folder)
    with pytest.raises(ServeError, match=r"serving\.properties:3 \(" + re.escape(key)):
        CATALOGUE.find_engine(spec).facts(spec)


def test_the_url_in_a_hint_keeps_the_model_s_name(tmp_path: Path) -> None:
    (finding,) = findings_of(
        djl_folders.make(tmp_path, "my-model", "engine=Python", my_model_pt="", model_pt="")
    )
    assert "in the model's URL: my_model::PyTorch=" in finding.hint


@pytest.mark.parametrize("word", ["TritonServe", "TFLit", "Rubikon"])
def test_no_engine_is_advised_that_is_not_served(word: str, tmp_path: Path) -> None:
    (finding,) = findings_of(djl_folders.make(tmp_path, "m", f"engine={word}", model_py=djl_folders.HANDLER))
    assert finding.hint == "The folder has a model of Python: write that."


def test_a_workflow(tmp_path: Path) -> None:
    whole = {
        **FLOW,
        "batchSize": 4,
        "models": {"m": {"modelUrl": "file:///m", "batchSize": 3, "application": "x"}},
        "workflow": {"mid": ["m", ["pre", "in"]], "out": ["post", "mid"]},
    }
    text = json.dumps(whole, indent=1)
    found = 0
    for number, match in enumerate(re.finditer(r'"([A-Za-z]{3,})"', text)):
        for at, slip in enumerate(slips(match[1])):
            folder = djl_folders.make(
                tmp_path / f"{number}-{at}", "m", glue_py="def pre(a): return a\ndef Post(a): return a\n"
            )
            mutant = f"{text[: match.start()]}{json.dumps(slip)}{text[match.end() :]}"
            (folder / "workflow.json").write_text(mutant)
            line = mutant.count("\n", 0, match.start()) + 1
            for one in findings_of(folder):
                assert one.file == str(folder / "workflow.json"), one
                if repr(slip) in one.found:
                    assert one.line == line, one
                    found += 1
    assert found > 30


def test_what_cannot_be_read_at_all_names_the_file(tmp_path: Path) -> None:
    folder = djl_folders.make(tmp_path, "m")
    (folder / "workflow.json").write_text('{"workflow": \n [}')
    (finding,) = findings_of(folder)
    assert (finding.file, finding.line) == (str(folder / "workflow.json"), 2)
