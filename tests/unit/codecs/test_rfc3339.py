"""Times as logs have them."""

import pytest

from trivium.codecs.rfc3339 import rfc3339


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.0, "1970-01-01T00:00:00.000Z"),
        (1764356368.1239, "2025-11-28T18:59:28.123Z"),
        (1764356368.9999, "2025-11-28T18:59:28.999Z"),
        (951782400.5, "2000-02-29T00:00:00.500Z"),
    ],
)
def test_times(seconds: float, expected: str):
    assert rfc3339(seconds) == expected
