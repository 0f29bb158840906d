"""How a server does, as lines: from the console's overview, and from an index of the v2 protocol."""

import pytest

from trivium.cli.status_client import overview_of
from trivium.cli.status_screen import duration, latency, status_lines
from trivium.wires.operate.schema import InstanceTally, ModelRow, Overview, ServerRow, Totals

GOOD = ModelRow(
    "echo", "1", "ready", None, "identity", 9, 2, 4.5, 0.000549, 0.0049, 3, 1, InstanceTally(1, 1, 1), ()
)
BAD = ModelRow(
    "cut", "1", "failed", "it\x1b[2J is cut", None, 0, 0, 0.0, None, None, 0, 0, InstanceTally(0, 0, 0), ()
)
SERVER = ServerRow("trivium", "0.1.0", "native", 1000.0, False, "Model 'cut' is failed.", "Correct it.")


def shown(overview: Overview, width: int = 1000, counts: bool = True) -> str:
    return "\n".join(status_lines(overview, "http://here", 1090.0, width, counts))


def test_a_server_that_is_not_ready_says_why_and_what_to_do() -> None:
    text = shown(Overview(SERVER, Totals(9, 2, 3, 1), (BAD, GOOD)))
    lines = text.splitlines()
    assert lines[0] == "http://here: NOT READY (trivium 0.1.0, native profile, up 1 min)"
    assert lines[1].split() == ["why", "Model", "'cut'", "is", "failed."]
    assert lines[2].split() == ["mend", "Correct", "it."]
    assert lines[3] == "9 requests, 2 failed, 3 waiting, 1 connection"
    assert lines[-3].split(None, 7) == [
        "echo", "1", "ready", "4.5", "549", "µs", "4.9", "ms  3        1, 1 starting, 1 failed",
    ]  # fmt: skip
    assert "\x1b" not in text
    assert lines[-1].startswith("cut")


def test_a_reason_that_the_sentence_has_is_not_said_twice() -> None:
    server = ServerRow("t", "1", "", 0.0, False, f"Model 'cut' is failed. {BAD.reason}", None)
    assert shown(Overview(server, Totals(0, 0, 0, 0), (BAD,))).count("is cut") == 1


def test_on_a_narrow_screen_each_model_is_a_block() -> None:
    text = shown(Overview(SERVER, Totals(1, 0, 0, 0), (GOOD,)), width=40)
    assert "  p99         4.9 ms" in text
    assert max(map(len, text.splitlines()[5:])) <= 40


def test_an_index_knows_states_alone() -> None:
    versions = [
        ("b", "1", "UNAVAILABLE", "it broke"),
        ("a", "1", "READY", ""),
        ("a", "2", "UNAVAILABLE", "unloaded"),
        ("c", "", "", ""),
    ]
    overview = overview_of("triton", "2", False, versions)
    assert [(each.name, each.version, each.state) for each in overview.models] == [
        ("a", "1", "ready"),
        ("b", "1", "failed"),
        ("c", "", "not loaded"),
    ]
    text = shown(overview, counts=False)
    assert "it broke" in text
    assert "requests," not in text
    assert overview_of("x", "", True, []).server.sentence is None


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [(None, "-"), (0.0, "0 µs"), (0.0005, "500 µs"), (0.0123, "12.3 ms"), (1.0, "1 s"), (12.34, "12.3 s")],
)
def test_latencies(seconds: float | None, wanted: str) -> None:
    assert latency(seconds) == wanted


@pytest.mark.parametrize(
    ("seconds", "wanted"), [(0, "0 s"), (59.9, "59 s"), (60, "1 min"), (7200, "2 h"), (200_000, "2 d")]
)
def test_durations(seconds: float, wanted: str) -> None:
    assert duration(seconds) == wanted
