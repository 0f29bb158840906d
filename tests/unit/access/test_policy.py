"""The decision about one request: the right that it needs, the key that it shows, the time."""

import itertools

import pytest

from trivium.access.keys import AccessKey
from trivium.access.policy import refusal
from trivium.types.access import AccessScope
from trivium.types.errors import Code

OPEN, ANY, INFER, OBSERVE, MANAGE = AccessScope
EXPIRED, VALID = 50.0, 150.0
NOW = 100.0


def key(*scopes: AccessScope, expires: float | None = None) -> AccessKey:
    return AccessKey("ci", bytes(32), frozenset(scopes), expires, "2027-01-31T00:00:00+00:00")


@pytest.mark.parametrize(
    ("needed", "shown", "code"),
    [
        (OPEN, None, None),
        (ANY, None, Code.UNAUTHENTICATED),
        (INFER, None, Code.UNAUTHENTICATED),
        (OBSERVE, None, Code.UNAUTHENTICATED),
        (MANAGE, None, Code.UNAUTHENTICATED),
        (ANY, key(INFER), None),
        (INFER, key(INFER), None),
        (OBSERVE, key(INFER), Code.FORBIDDEN),
        (MANAGE, key(INFER), Code.FORBIDDEN),
        (ANY, key(OBSERVE), None),
        (INFER, key(OBSERVE), Code.FORBIDDEN),
        (OBSERVE, key(OBSERVE), None),
        (MANAGE, key(OBSERVE), Code.FORBIDDEN),
        (MANAGE, key(INFER, OBSERVE), Code.FORBIDDEN),
        (ANY, key(MANAGE), None),
        (INFER, key(MANAGE), None),
        (OBSERVE, key(MANAGE), None),
        (MANAGE, key(MANAGE), None),
        (MANAGE, key(MANAGE, expires=VALID), None),
        (OPEN, key(INFER, expires=EXPIRED), None),
        (INFER, key(INFER, expires=EXPIRED), Code.UNAUTHENTICATED),
        (INFER, key(INFER, expires=NOW), Code.UNAUTHENTICATED),
        (MANAGE, key(INFER, expires=EXPIRED), Code.UNAUTHENTICATED),
    ],
)
def test_who_may_do_what(needed: AccessScope, shown: AccessKey | None, code: Code | None) -> None:
    found = refusal(needed, shown, shown is not None, NOW)
    assert (found and found.code) == code


def test_the_reason_is_told() -> None:
    texts = {
        str(refusal(INFER, None, False, NOW)),
        str(refusal(INFER, None, True, NOW)),
        str(refusal(INFER, key(INFER, expires=EXPIRED), True, NOW)),
        str(refusal(MANAGE, key(INFER, OBSERVE), True, NOW)),
    }
    for word in (
        "needs a key",
        "none of this server's",
        "expired, at 2027-01-31",
        "is for infer, observe, and",
    ):
        assert sum(word in text for text in texts) == 1


def test_nobody_without_a_valid_key_does_anything_that_is_not_open() -> None:
    for needed, has_shown in itertools.product(AccessScope, (True, False)):
        assert (refusal(needed, None, has_shown, NOW) is None) == (needed is OPEN)
