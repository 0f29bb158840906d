"""Every option of `torchserve`, and every way to start it wrongly, beside what TorchServe 0.12.0 did: exit status,
first line, what is open, what is left.

`torchserve_commands/original.json` is its record, which `make original` writes. `BETTER` has what is different on
purpose, with the reason; one that is no longer different fails, too.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.torchserve_commands.lines import ENDING, SERVED
from tests.e2e.torchserve_commands.play import Program, ended, seen
from tests.harness.torchserve_command import TORCHSERVE

RECORD = json.loads((Path(__file__).parent / "torchserve_commands" / "original.json").read_text())
OURS = Program(TORCHSERVE)
NAMED = "a wrong value ends the start, and is named with its line, where the original goes on with another"
LEFT = "a start that did not come up does not end with 0"
UNCLAIMED = "a pid file of no server is taken away, and said so, whatever is in it; the original fails with a traceback"
BETTER: dict[str, tuple[Any, str]] = {
    "a store of the configuration that is not there": (
        [1, "config.properties:8 (model_store) directory not found: nowhere"],
        "the line names where the folder is written, not an option that was not given",
    ),
    "a configuration by the variable that is not there": (
        [1, "TS_CONFIG_FILE file not found: nowhere"],
        "the line names the variable, not an option that was not given",
    ),
    "a configuration by the variable before that of the line": (
        [1, "TS_CONFIG_FILE file not found: nowhere"],
        "the line names the variable, which goes before the option",
    ),
    "an orphan's pid file, and the version": (
        [0, "TorchServe Version is 0.12.0"],
        "who asks for the version changes nothing",
    ),
    "a pid file of another program, and no store": ([1, "Removing orphan pid file."], UNCLAIMED),
    "a pid file without a number": ([1, "Removing orphan pid file."], UNCLAIMED),
    "an empty pid file": ([0, "Removing orphan pid file."], UNCLAIMED),
    "a number below 0 in the pid file": ([0, "Removing orphan pid file."], UNCLAIMED),
    "a property of a wrong type": (
        [1, "Invalid configuration: config.properties:8: job_queue_size: "],
        NAMED,
    ),
    "a property below its range": (
        [1, "Invalid configuration: config.properties:8: job_queue_size: "],
        NAMED,
    ),
    "a property that there is not": (
        [1, "Invalid configuration: config.properties:8: job_queue_sise: job_queue_sise is no property"],
        NAMED,
    ),
    "JSON cut short": ([1, "Invalid configuration: config.properties:8: models: "], LEFT),
    "an unset variable": (
        [
            1,
            "Invalid configuration: config.properties:8: metrics_config: Invalid Environment Variable NOBODY_SETS_THIS",
        ],
        LEFT,
    ),
    "an address that is none": ([1, "Invalid configuration: config.properties:8: inference_address: "], LEFT),
    "an address of nobody": ([1, "Torchserve version: 0.12.0"], LEFT),
    "a file of metrics that is not there": (
        [1, "Invalid configuration: config.properties:8: metrics_config: nowhere.yaml: No such file"],
        NAMED,
    ),
    "an envelope that there is not": (
        [1, "Invalid configuration: config.properties:8: service_envelope: "],
        NAMED,
    ),
    "a regular expression that is none": (
        [1, "Invalid configuration: config.properties:8: allowed_urls: "],
        NAMED,
    ),
}
"""Line -> exit status and beginning of the first line here, and why."""


def test_the_record_is_of_these_lines() -> None:
    assert RECORD.keys() == {*ENDING, *SERVED}, "run `make original`"
    assert RECORD.keys() >= BETTER.keys()


@pytest.mark.parametrize("name", ENDING)
def test_a_line_that_ends_has_the_originals_status_and_first_line(name: str) -> None:
    compare(name, ended(OURS, ENDING[name]))


@pytest.mark.parametrize("name", SERVED)
def test_a_server_shows_what_the_original_shows(name: str) -> None:
    found = seen(OURS, SERVED[name])
    compare(name, [found["status"], found["first"]] if found.keys() == {"status", "first"} else found)


def compare(name: str, found: Any) -> None:
    original = RECORD[name]
    if name not in BETTER:
        assert found == original, f"{name}: TorchServe: {original}"
        return
    (status, beginning), reason = BETTER[name]
    assert (found[0], found[1][: len(beginning)]) == (status, beginning), reason
    assert found != (
        original if isinstance(original, list) else [original["status"], original.get("first", "")]
    )
