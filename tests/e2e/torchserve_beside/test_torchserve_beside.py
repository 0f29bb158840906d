"""Beside the real TorchServe, whose answers `make original` has written down: ours are the same but for what is in
`differences`.

The record is of exactly the requests and stories that are asked here; one that is older fails.
"""

import copy
import fnmatch
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.torchserve_beside.archives import write_store
from tests.e2e.torchserve_beside.compare import differing, shown
from tests.e2e.torchserve_beside.differences import ACCEPTED, Difference
from tests.e2e.torchserve_beside.ours import ours
from tests.e2e.torchserve_beside.play import Player, digest
from tests.e2e.torchserve_beside.record import RECORD
from tests.e2e.torchserve_beside.servers import SETTINGS, Setting

RECORDED: dict[str, Any] = json.loads(RECORD.read_text())
MOST_ACCEPTED, LEAST_ASKED, LEAST_BAD, LEAST_STORIES, PLANTED = 15, 250, 100, 25, 20


@pytest.fixture(scope="module", params=SETTINGS, ids=lambda setting: setting.name)
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Any]]:
    """One setting's name, and what ours answers under it."""
    setting: Setting = request.param
    folder = tmp_path_factory.mktemp(setting.name)
    store = write_store(folder / "store")
    models = [f"{model}.mar" for model in setting.models]
    known = {
        name: about for name, about in RECORDED[setting.name].items() if not accepted(setting.name, name)
    }
    with ours(folder, store, setting.text, "--ncs", "--models", *models) as addresses:
        yield setting.name, Player(addresses, folder, known).play(setting)


def accepted(setting: str, name: str) -> list[Difference]:
    """The differences that this answer may show."""
    return [
        each
        for each in ACCEPTED
        for where, pattern in each.requests
        if where == setting and fnmatch.fnmatchcase(name, pattern)
    ]


def test_what_differs_is_what_was_accepted(played: tuple[str, Any]) -> None:
    setting, found = played
    told = []
    for name, about in found.items():
        theirs = RECORDED[setting][name]["answer"]
        aspects = differing(theirs, about["answer"])
        known = accepted(setting, name)
        is_told = aspects or any(each.is_luck for each in known) or not known
        if not is_told or not aspects <= frozenset().union(*(each.aspects for each in known)):
            told.append(f"{name}: {sorted(aspects)}\n{shown(theirs, about['answer'])}")
    assert not told, "\n".join(told)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_record_is_of_what_is_asked(setting: Setting) -> None:
    asked = {request.name: request.digest() for request in setting.requests()}
    asked |= {f"story: {name}": digest(steps) for name, steps in setting.stories.items()}
    recorded = {name: about["request"] for name, about in RECORDED[setting.name].items()}
    assert recorded == asked, "make original"


def test_there_are_enough_of_each_kind() -> None:
    requests = [request for setting in SETTINGS for request in setting.requests()]
    assert len(requests) >= LEAST_ASKED
    assert sum(request.is_bad for request in requests) >= LEAST_BAD
    assert {request.listener for request in requests} == {
        "inference",
        "management",
        "metrics",
        "grpc_inference",
        "grpc_management",
    }
    assert sum(len(setting.stories) for setting in SETTINGS) >= LEAST_STORIES
    assert len(ACCEPTED) <= MOST_ACCEPTED


def test_planted_differences_are_found() -> None:
    chance = random.Random(PLANTED)
    answers = [
        (answer, aspect)
        for about in RECORDED["open"].values()
        for answer in [about["answer"]]
        if isinstance(answer, dict)
        for aspect in answer
    ]
    for answer, aspect in chance.sample(answers, PLANTED):
        planted = copy.deepcopy(answer)
        value = planted[aspect]
        planted[aspect] = not value if isinstance(value, bool) else value[:-1] if value else "x"
        assert differing(answer, planted) == {aspect}


def test_each_accepted_difference_is_of_something_that_is_asked() -> None:
    for each in ACCEPTED:
        for where, pattern in each.requests:
            assert fnmatch.filter(RECORDED[where], pattern), f"{where}: {pattern}"


def test_nothing_of_this_machine_is_recorded() -> None:
    text = RECORD.read_text()
    assert "/tmp" not in text
