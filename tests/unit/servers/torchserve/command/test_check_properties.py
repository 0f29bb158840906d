"""`trivium check --ts-config` names every mutant of TorchServe's properties, and shows each value with its origin."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from trivium.cli.check import command
from trivium.servers.torchserve.command.properties_table import CONFIG
from trivium.settings.kinds import TEXT, Whole

WIDE = {"COLUMNS": "400"}


def named(output: str) -> dict[int, str]:
    """The findings of a run of `check`: line in the file -> all its words."""
    found: dict[int, str] = {}
    for part in re.split(r"\n +(?=(?:error|notice) )", "\n" + output)[1:]:
        place = re.match(r"(?:error|notice) (\S+):(\d+)\s", part)
        if place:
            found[int(place[2])] = f"{place[1]} {' '.join(part.split())}"
    return found


def slips(name: str) -> Iterator[str]:
    """The name with a letter left out, doubled, swapped with the next, and in capitals."""
    middle = len(name) // 2
    yield name[:middle] + name[middle + 1 :]
    yield name[:middle] + name[middle] + name[middle:]
    yield name[: middle - 1] + name[middle] + name[middle - 1] + name[middle + 1 :]
    yield name.upper()


def test_every_misspelt_property_is_named_with_the_nearest(tmp_path: Path) -> None:
    mutants = {slip: name for name in CONFIG.rows for slip in slips(name) if slip not in CONFIG.rows}
    file = tmp_path / "config.properties"
    file.write_text("".join(f"{slip}=1\n" for slip in mutants))
    done = CliRunner(env=WIDE).invoke(command, ["--ts-config", str(file)])
    assert done.exit_code == 1
    found = named(done.output)
    assert len(mutants) > 250
    for line, (slip, name) in enumerate(mutants.items(), 1):
        assert slip in found[line]
        assert f"Did you mean {name}?" in found[line], slip
        assert "config.properties" in found[line]


@pytest.mark.parametrize("nth", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_every_wrong_value_is_named_with_what_is_expected(tmp_path: Path, nth: int) -> None:
    values = [(row, "no one(") for row in CONFIG.rows.values() if row.kind is not TEXT]
    values += [
        (row, str(number))
        for row in CONFIG.rows.values()
        if isinstance(row.kind, Whole)
        for number in (row.kind.least - 1, row.kind.most + 1)
    ]
    file = tmp_path / "config.properties"
    for number, (row, value) in enumerate(values[::nth]):
        file.write_text("\n" * number + f"{row.name}={value}\n")
        done = CliRunner(env=WIDE).invoke(command, ["--ts-config", str(file)])
        assert done.exit_code == 1
        found = named(done.output)
        assert row.name in found[number + 1]
        assert row.kind.expected in found[number + 1], (row.name, value)


def test_each_value_is_shown_with_its_origin_and_passwords_are_not(tmp_path: Path) -> None:
    file = tmp_path / "config.properties"
    file.write_text("# first\njob_queue_size=7\nkeystore_pass=geheim\nmodel_store=$$STORE$$\n")
    done = CliRunner(env={**WIDE, "STORE": str(tmp_path)}).invoke(command, ["--ts-config", str(file)])
    assert done.exit_code == 0, done.output
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in done.output.splitlines() if line.strip()}
    assert rows["job_queue_size"] == f"7 {file}:2 (job_queue_size)"
    assert rows["model_store"].startswith(str(tmp_path))
    assert rows["default_response_timeout"] == "120 default"
    assert "geheim" not in done.output
    assert rows.keys() > CONFIG.rows.keys()


def model(store: Path, name: str) -> None:
    (store / name / "MAR-INF").mkdir(parents=True)
    told = {"modelName": name, "modelVersion": "1.0", "handler": "handler.py"}
    manifest = json.dumps({"runtime": "python", "model": told})
    (store / name / "MAR-INF" / "MANIFEST.json").write_text(manifest)
    (store / name / "handler.py").write_text("def handle(data, context):\n    return data\n")


def test_the_models_that_it_names_are_read_under_it(tmp_path: Path) -> None:
    model(tmp_path / "store", "one")
    file = tmp_path / "config.properties"
    file.write_text('models={"uno": {"1.0": {"batchSize": 4}}}\njob_queue_size=7\nload_models=uno=one\n')
    words = ["--ts-config", str(file), "--model-store", str(tmp_path / "store")]
    done = CliRunner(env=WIDE).invoke(command, words)
    assert done.exit_code == 0, done.output
    assert "model uno, version 1.0" in done.output
    lines = {line.split()[0]: line for line in done.output.splitlines() if line.strip()}
    assert lines["models"].endswith("config.properties:1")
    assert lines["job_queue_size"].split() == ["job_queue_size", "7", "config.properties:2"]
    done = CliRunner(env=WIDE).invoke(command, ["--all", "--ts-config", str(file), str(tmp_path / "store")])
    assert "config.properties:2 (job_queue_size)" in done.output


def test_a_model_that_cannot_be_had_is_a_fault_here(tmp_path: Path) -> None:
    file = tmp_path / "config.properties"
    file.write_text("load_models=nobody.mar\n")
    words = ["--ts-config", str(file), "--model-store", str(tmp_path)]
    done = CliRunner(env=WIDE).invoke(command, words)
    assert done.exit_code == 1
    assert "there is no nobody.mar in the model store" in done.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("enable_grpc_ssl=true", "needs private_key_file and certificate_file"),
        ("inference_address=http://0.0.0.0:1\ndisable_token_authorization=true", "The token check is off"),
    ],
)
def test_what_a_server_would_say_at_its_start_is_said(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "config.properties"
    file.write_text(text)
    done = CliRunner(env=WIDE).invoke(command, ["--ts-config", str(file)])
    assert words in " ".join(done.output.split())


def test_a_store_goes_with_a_configuration(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["--model-store", str(tmp_path)])
    assert done.exit_code == 2
