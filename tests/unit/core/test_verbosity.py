import logging

import pytest

from trivium.core.verbosity import WORDS, switch
from trivium.types.errors import ServeError


@pytest.fixture
def logger():
    made = logging.Logger("apart")
    made.setLevel(logging.WARNING)
    return made


@pytest.mark.parametrize(
    ("switches", "level"),
    [
        ({}, "warning"),
        ({"info": True}, "info"),
        ({"debug": True}, "debug"),
        ({"debug": False}, "warning"),
        ({"warning": False}, "error"),
        ({"error": False}, "none"),
        ({"debug": False, "info": True, "warning": True, "error": True}, "info"),
        ({"debug": False, "info": False, "warning": False, "error": True}, "error"),
    ],
)
def test_switches_move_the_level(logger, switches, level):
    assert switch(logger, switches) == level
    assert switch(logger, {}) == level
    assert [logger.isEnabledFor(getattr(logging, word.upper())) for word in WORDS[:-1]] == [
        index >= WORDS.index(level) for index in range(4)
    ]


def test_asking_sets_nothing():
    logger = logging.Logger("apart")
    logger.parent = logging.Logger("above", logging.ERROR)
    assert switch(logger, {}) == "error"
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("switches", "words"),
    [({"info": True, "error": False}, "'info' on and 'error' off"), ({"loud": True}, "'loud'")],
)
def test_what_cannot_be(logger, switches, words):
    with pytest.raises(ServeError, match=words):
        switch(logger, switches)
    assert switch(logger, {}) == "warning"
