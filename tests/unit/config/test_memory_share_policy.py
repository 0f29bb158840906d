"""How much of a control group's memory the server holds by default: a share, unless an option says otherwise."""

import pytest

from trivium.catalogue import configured
from trivium.config.memory_share_policy import within_memory

MB = 2**20
NAMES = ("max_body_bytes", "max_buffered_bytes")


@pytest.mark.parametrize(
    ("memory", "body", "buffered", "deferred", "unread", "disk"),
    [
        (None, 256, 2048, 256, 64, 1024),
        (64 * 1024, 256, 2048, 256, 64, 1024),
        (2048, 256, 256, 128, 64, 256),
        (512, 64, 64, 32, 16, 64),
    ],
)
def test_defaults_are_a_share(memory, body, buffered, deferred, unread, disk) -> None:
    config = within_memory(configured(), memory and memory * MB)
    assert [getattr(config.server, name) // MB for name in NAMES] == [body, buffered]
    models = config.models
    assert [models.deferred_bytes // MB, models.unread_memory // MB, models.unread_disk // MB] == [
        deferred,
        unread,
        disk,
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_buffered_bytes": 2048 * MB}, [256, 2048]),
        ({"max_body_bytes": 100 * MB}, [100, 100]),
        ({"max_body_bytes": 10 * MB}, [10, 64]),
        ({"max_body_bytes": 300 * MB, "max_buffered_bytes": 200 * MB}, [300, 200]),
    ],
)
def test_what_somebody_has_set_stays(options: dict[str, int], expected: list[int]) -> None:
    config = within_memory(configured(**options), 512 * MB)
    assert [getattr(config.server, name) // MB for name in NAMES] == expected
