"""How often a property is tried: a few times by `make test`, and as often as it needs by `make e2e`.

Pytest's own option chooses: `--hypothesis-profile=long`. The property is the same.
"""

from hypothesis import HealthCheck, settings

SHORT, LONG = "short", "long"
_SHARE = 10
_LEAST = 20


def register() -> None:
    """Make both profiles known. In neither makes a machine that stands still for a while a test red."""
    for name, count in ((SHORT, _LEAST), (LONG, 100)):
        settings.register_profile(
            name, deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=count
        )
    settings.load_profile(SHORT)


def examples(count: int) -> int:
    """`count` in the long run; otherwise a tenth of it, but at least twenty."""
    is_long = settings.default.max_examples >= 100
    return count if is_long else min(count, max(_LEAST, count // _SHARE))
