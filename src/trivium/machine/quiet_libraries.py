"""Variables by which libraries leave out progress bars and advice: a log has lines, and nobody watches it."""

from collections.abc import Mapping

QUIET: Mapping[str, str] = {
    "TQDM_DISABLE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "GLOG_minloglevel": "3",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
}
"""Of tqdm, huggingface_hub, Paddle and transformers."""


def quieted(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with these variables; those that somebody has set stay as they are."""
    return {**QUIET, **environment}
