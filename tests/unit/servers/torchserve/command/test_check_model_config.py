"""`trivium check` names every mutant of the keys of model-config.yaml: misspelt, of the wrong type, out of range."""

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from trivium.cli.check import command
from trivium.servers.torchserve.words.keys import NUMBERS, ROWS
from trivium.settings.kinds import SWITCH, TEXT, Whole
from trivium.settings.setting import Support

JUDGED = {key: row for key, row in ROWS.items() if row.support is not Support.PASSED_ON}
WRONG = {
    Whole(): ("many", 1.5, True, [1]),
    Whole(1): ("many", 1.5, True, [1]),
    NUMBERS: ("0,1", 3, ["a"], [1.5]),
    SWITCH: ("yes please", 1, "true", [True]),
    TEXT: (7, True, ["gpu"], {"a": 1}),
}
"""Of each kind, values of other types."""


def found(folder: Path, text: str) -> dict[int, str]:
    """The findings at model-config.yaml: line -> all its words."""
    archive = folder / "m.mar"
    model = {
        "modelName": "m",
        "modelVersion": "1.0",
        "handler": "handler.py",
        "configFile": "model-config.yaml",
    }
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("MAR-INF/MANIFEST.json", json.dumps({"runtime": "python", "model": model}))
        packed.writestr("handler.py", "def handle(data, context):\n    return data\n")
        packed.writestr("model-config.yaml", text)
    output = CliRunner(env={"COLUMNS": "400"}).invoke(command, [str(archive)]).output
    told: dict[int, str] = {}
    for part in re.split(r"\n +(?=(?:error|notice) )", "\n" + output)[1:]:
        place = re.match(r"(?:error|notice) \S*model-config\.yaml:(\d+)\s", part)
        if place:
            told[int(place[1])] = " ".join(part.split())
    return told


def slips(key: str) -> Iterator[str]:
    """The key with a letter left out, doubled, swapped with the next, and in other capitals."""
    middle = len(key) // 2
    yield key[:middle] + key[middle + 1 :]
    yield key[:middle] + key[middle] + key[middle:]
    yield key[: middle - 1] + key[middle] + key[middle - 1] + key[middle + 1 :]
    yield key.lower()


def test_every_misspelt_key_is_named_with_the_nearest(tmp_path: Path) -> None:
    mutants = {slip: key for key in JUDGED for slip in slips(key) if slip not in ROWS}
    told = found(tmp_path, "".join(f"{slip}: 1\n" for slip in mutants))
    assert len(mutants) > 60
    for line, (slip, key) in enumerate(mutants.items(), 1):
        assert slip in told[line]
        assert f"Did you mean {key}?" in told[line], slip


@pytest.mark.parametrize("nth", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_every_value_of_another_type_is_named(tmp_path: Path, nth: int) -> None:
    mutants = [(key, value) for key, row in JUDGED.items() for value in WRONG.get(row.kind, ())]
    assert len(mutants) > 60
    for key, value in mutants[::nth]:
        told = found(
            tmp_path, f"# a line\n{yaml.safe_dump({key: value}, default_flow_style=True, width=9999)}"
        )
        assert key in told[2], (key, value)
        assert JUDGED[key].kind.expected in told[2], (key, value)


@pytest.mark.parametrize("key", [key for key, row in JUDGED.items() if isinstance(row.kind, Whole)])
def test_every_number_out_of_range_is_named(key: str, tmp_path: Path) -> None:
    kind = JUDGED[key].kind
    assert isinstance(kind, Whole)
    for value in (kind.least - 1, 2**31):
        told = found(tmp_path, f"{key}: {value}\n")
        assert key in told[1]
        assert str(value) in told[1]


def test_a_device_that_is_none_is_named(tmp_path: Path) -> None:
    assert "neither cpu nor gpu" in found(tmp_path, "deviceType: tpu\n")[1]


def test_a_key_of_the_handlers_own_is_nobody_elses_business(tmp_path: Path) -> None:
    assert not found(tmp_path, "threshold: 0.5\nhandler: {profile: true}\nlabels: [a, b]\n")
