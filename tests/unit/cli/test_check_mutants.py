"""`trivium check` names every mutant of DJL's keys: misspelt, of the wrong type, out of range."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.harness.djl_folders import HANDLER, make, zipped

from trivium.cli.check import command
from trivium.servers.djl.command.keys import CONFIG
from trivium.servers.djl.words.engines import ENGINES, DjlEngine
from trivium.servers.djl.words.judging import KNOWN
from trivium.servers.djl.words.names import SHEET
from trivium.servers.djl.words.values import FORMS
from trivium.settings.kinds import TEXT, Whole

FILES = {
    "Python": {"model_py": HANDLER},
    "PyTorch": {"m_pt": ""},
    "OnnxRuntime": {"m_onnx": ""},
    "PaddlePaddle": {"m_pdmodel": ""},
    "XGBoost": {"m_json": ""},
    "TensorFlow": {"saved_model.pb": ""},
    "LightGBM": {"m_txt": ""},
    "MXNet": {"m-symbol.json": ""},
}
SERVED = [engine for engine in ENGINES if engine.engine]
WRONG_CONFIG = {"load_models": "a:b:c:d:e=x", "model_url_pattern": "("}


def named(output: str) -> dict[int, str]:
    """The findings of a run of `check`: line in the file -> all its words."""
    found: dict[int, str] = {}
    for part in re.split(r"\n +(?=(?:error|notice) )", "\n" + output)[1:]:
        place = re.match(r"(?:error|notice) (\S+):(\d+)\s", part)
        if place:
            found[int(place[2])] = f"{place[1]} {' '.join(part.split())}"
    return found


def check(*words: str) -> dict[int, str]:
    done = CliRunner(env={"COLUMNS": "400"}).invoke(command, words)
    assert done.exit_code == 1, done.output
    return named(done.output)


def slips(key: str) -> Iterator[str]:
    """The key with a letter left out, doubled, swapped with the next, and in other capitals."""
    middle = key.rindex(".") + 2 if "." in key else len(key) // 2
    yield key[:middle] + key[middle + 1 :]
    yield key[:middle] + key[middle] + key[middle:]
    yield key[: middle - 1] + key[middle] + key[middle - 1] + key[middle + 1 :]
    yield key.swapcase()


def misspelt(keys: Mapping[str, object]) -> dict[str, str]:
    """Mutants that are not another key of DJL's by chance -> the key."""
    taken = SHEET | set(KNOWN) | {key.lower() for key in KNOWN}
    return {slip: key for key in keys for slip in slips(key) if slip not in taken and slip != key}


@pytest.mark.parametrize("engine", SERVED, ids=lambda each: each.name)
def test_every_misspelt_key_of_a_model_is_named_with_the_nearest(tmp_path: Path, engine: DjlEngine) -> None:
    mutants = misspelt(engine.keys)
    assert len(mutants) > 2 * len(engine.keys)
    lines = [f"engine={engine.name}", "job_queue_size=x", *(f"{slip}=1" for slip in mutants)]
    found = check(str(make(tmp_path, "m", *lines, **FILES[engine.name])))
    for line, slip in enumerate(mutants, 3):
        assert slip in found[line], slip
        assert "serving.properties" in found[line]
        assert re.search(r"Did you mean \S+\?", found[line]), slip
    right = sum(f"Did you mean {key}?" in found[line] for line, key in enumerate(mutants.values(), 3))
    assert right >= 0.9 * len(mutants), "a slip may be as near to a neighbour as to its key, seldom nearer"


@pytest.mark.parametrize("engine", SERVED, ids=lambda each: each.name)
def test_every_wrong_value_of_a_model_is_named_with_what_is_expected(
    tmp_path: Path, engine: DjlEngine
) -> None:
    forms = {key: FORMS[key] for key in engine.keys if key in FORMS}
    assert len(forms) > 15
    wrong = dict.fromkeys(forms, "maybe")
    over = {key: str(f.most + 1) for key, f in forms.items() if isinstance(f, Whole)}
    under = {key: str(f.least - 1) for key, f in forms.items() if isinstance(f, Whole)}
    for number, values in enumerate((wrong, over, under)):
        lines = ["option.model_loading_timeout=1", "load_on_devices=tpu"]
        lines += [f"{key}={value}" for key, value in values.items() if key != "option.model_loading_timeout"]
        found = check(str(make(tmp_path / str(number), "m", *lines, **FILES[engine.name])))
        assert "cpu" in found[2]
        for line, written in enumerate(lines[2:], 3):
            key = written.partition("=")[0]
            assert key in found[line], written
            assert forms[key].expected in found[line], written


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("engine=Pyton", "Did you mean Python?"),
        ("option.model_loading_timeout=soon", "a whole number from 1"),
        ("option.env=A", "NAME=value"),
        ("load_on_devices=gpu77", "a GPU that is there"),
        ("option.entryPoint=modle.py", "Did you mean model.py?"),
    ],
)
def test_values_that_other_rules_read(tmp_path: Path, line: str, words: str) -> None:
    found = check(str(make(tmp_path, "m", line, model_py=HANDLER)))
    assert words in found[1]


def test_every_misspelt_key_of_a_configuration_is_named_with_the_nearest(tmp_path: Path) -> None:
    mutants = {slip: key for key in CONFIG.rows for slip in list(slips(key))[:3] if slip not in CONFIG.rows}
    file = tmp_path / "config.properties"
    file.write_text("".join(f"{slip}=1\n" for slip in mutants))
    found = check("--djl-config", str(file))
    for line, (slip, key) in enumerate(mutants.items(), 1):
        assert slip in found[line]
        assert f"Did you mean {key}?" in found[line], slip
        assert "config.properties" in found[line]


def test_every_wrong_value_of_a_configuration_is_named_with_what_is_expected(tmp_path: Path) -> None:
    rows = [row for row in CONFIG.rows.values() if row.kind is not TEXT]
    values = [(row, WRONG_CONFIG.get(row.name, "no one")) for row in rows]
    for row in rows:
        if isinstance(row.kind, Whole):
            values += [(row, str(number)) for number in (row.kind.least - 1, row.kind.most + 1)]
    file = tmp_path / "config.properties"
    for number, (row, value) in enumerate(values):
        file.write_text("\n" * number + f"{row.name}={value}\n")
        found = check("--djl-config", str(file))
        assert row.name in found[number + 1]
        assert row.kind.expected in found[number + 1], (row.name, value)


def test_models_are_read_under_a_configuration(tmp_path: Path) -> None:
    file = tmp_path / "config.properties"
    file.write_text("job_queue_size=7\nload_models=NONE\n")
    model = make(tmp_path, "m", model_py=HANDLER)
    done = CliRunner(env={"COLUMNS": "200"}).invoke(command, ["--djl-config", str(file), str(model)])
    assert done.exit_code == 0, done.output
    (line,) = [line for line in done.output.splitlines() if line.split()[:1] == ["job_queue_size"]]
    assert line.split()[1:] == ["7", "config.properties:1"]


def test_an_archive_is_named_and_not_where_it_was_unpacked(tmp_path: Path) -> None:
    archive = zipped(make(tmp_path, "m", "batch_sise=4", model_py=HANDLER), tmp_path / "a.zip", "inner/")
    done = CliRunner(env={"COLUMNS": "300"}).invoke(command, ["--all", str(archive)])
    assert done.exit_code == 0, done.output
    assert f"{archive}/inner/serving.properties:1" in done.output
    (line,) = [line for line in done.output.splitlines() if line.strip().startswith("folder ")]
    assert f" {archive}/inner " in line
    assert not re.search(r"trivium-\S+/", done.output.replace(str(tmp_path), ""))


def test_without_a_path_and_a_configuration_there_is_nothing_to_check() -> None:
    done = CliRunner().invoke(command, [])
    assert done.exit_code == 2
    assert "--djl-config FILE" in done.output


def test_a_configuration_that_cannot_start_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config.properties"
    file.write_text("inference_address=https://127.0.0.1:8443\n")
    done = CliRunner(env={"COLUMNS": "200"}).invoke(command, ["--djl-config", str(file)])
    assert done.exit_code == 1
    assert "certificate_file" in done.output
