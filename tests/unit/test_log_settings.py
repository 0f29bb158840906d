import logging

import pytest

from trivium.log_settings import ProcessLog
from trivium.types.errors import Code, ServeError
from trivium.types.log_settings import SILENCE, LogChange, LogSettings

LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


@pytest.fixture
def logger():
    made = logging.Logger("apart")
    made.setLevel(logging.WARNING)
    return made


def written(log):
    return [log.passes(logging.makeLogRecord({"levelno": level})) for level in LEVELS]


@pytest.mark.parametrize(
    ("level", "settings"),
    [
        (logging.DEBUG, LogSettings(1)),
        (logging.INFO, LogSettings()),
        (logging.WARNING, LogSettings(0, False)),
        (logging.ERROR, LogSettings(0, False, False)),
        (SILENCE, LogSettings(0, False, False, False)),
    ],
)
def test_at_first_the_level_says(level, settings):
    logger = logging.Logger("apart")
    logger.parent = logging.Logger("above", level)
    log = ProcessLog(logger)
    assert log.settings == log.change(LogChange()) == settings
    assert logger.level == logging.NOTSET
    assert written(log) == [True] * 4  # whoever has a level of its own keeps it


@pytest.mark.parametrize(
    ("change", "level", "is_written"),
    [
        (LogChange(info=True), logging.INFO, [False, True, True, True]),
        (LogChange(verbose=2), logging.DEBUG, [True, False, True, True]),
        (LogChange(verbose=0), logging.WARNING, [False, False, True, True]),
        (LogChange(warning=False), logging.ERROR, [False, False, False, True]),
        (LogChange(info=True, warning=False), logging.INFO, [False, True, False, True]),
        (LogChange(error=False), logging.WARNING, [False, False, True, False]),
        (LogChange(warning=False, error=False), SILENCE, [False] * 4),
    ],
)
def test_switches_do_not_depend_on_one_another(logger, change, level, is_written):
    log = ProcessLog(logger)
    assert log.change(change) == log.settings
    assert (logger.level, written(log)) == (level, is_written)
    log.change(LogChange(0, True, True, True))
    assert (logger.level, written(log)) == (logging.INFO, [False, True, True, True])


def test_the_form(logger):
    log = ProcessLog(logger)
    with pytest.raises(ServeError, match="log_format") as caught:
        log.change(LogChange(info=True, is_iso=True))
    assert (caught.value.code, log.settings.info) == (Code.UNSUPPORTED, False)
    assert log.change(LogChange(is_iso=False)).is_iso is False
    log.use(LogSettings(file="/x"), has_forms=True)
    assert log.change(LogChange(is_iso=True)) == LogSettings(is_iso=True, file="/x")
