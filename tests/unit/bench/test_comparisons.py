"""Which rows are put side by side, and what is said of two trees."""

from pathlib import Path

import pytest
from bench import against, repository, requests
from bench.cost import beside_v2, variants


def test_an_echo_of_another_dialect_is_put_beside_the_v2_echo_of_its_kind() -> None:
    rows = [variant.row for variant in variants()]
    for row in rows:
        row.cpu_us, row.floor_us = [40.0], [10.0]
        if row.name.startswith("DJL"):
            row.cpu_us = [50.0]
    djl, torchserve = beside_v2(rows)
    assert (djl.ratio, djl.is_met) == (1.25, True)
    assert (torchserve.ours.name.split()[0], torchserve.ratio) == ("TorchServe", 1.0)
    assert djl.theirs is torchserve.theirs
    assert djl.theirs.name == "handler echo, unbatched, 16 connections"


def test_a_script_sends_the_headers_that_its_request_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "CACHE", tmp_path)
    v2, raw = (requests.script(each) for each in (requests.echo("a"), requests.raw_echo("b")))
    assert "Inference-Header-Content-Length" in v2.read_text()
    assert "Inference-Header-Content-Length" not in raw.read_text()
    assert (tmp_path / "a-Request.body").read_bytes().endswith((tmp_path / "b-RawRequest.body").read_bytes())


def test_the_ratio_of_two_trees_is_that_of_the_rounds_with_its_spread() -> None:
    pair = against.Pair("row", here=[10.0, 30.0, 22.0], base=[20.0, 20.0, 20.0])
    assert pair.line() == "row: 22.0 us here, 20.0 at the base, 1.100 (0.500 to 1.500)"


def test_a_base_that_did_not_start_says_why_in_its_row() -> None:
    pair = against.Pair("row", failure="ModuleNotFoundError: No module named 'grpc'")
    assert pair.line() == "row: no figure of the base: ModuleNotFoundError: No module named 'grpc'"


def test_a_commit_that_is_none_is_refused_with_its_name() -> None:
    with pytest.raises(SystemExit, match="BASE=no-such-commit is no commit"):
        against.worktree("no-such-commit")


def test_the_foreign_handlers_are_written_for_the_profiles_that_rows_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository, "CACHE", tmp_path)
    asked = {variant.profile for variant in variants()} - {"native"}
    assert asked == set(repository.make_foreign())
