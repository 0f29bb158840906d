"""The option --engine-parameters: parameters of engines for models that have no configuration of their own."""

import re
from collections.abc import Mapping

from trivium.types.errors import Code, ServeError
from trivium.types.spoken import spoken
from trivium.types.trust import CODE

_NAME = re.compile(r"[a-z0-9-]+\.[A-Za-z0-9_.-]+")
_TRUST = f".{CODE}"


def parse_engine_parameters(text: str) -> dict[str, str]:
    """Return the value of each "engine.name". Raises INVALID for what is none."""
    found: dict[str, str] = {}
    for pair in filter(None, (one.strip() for one in text.split(","))):
        name, sign, value = (part.strip() for part in pair.partition("="))
        if not sign or not _NAME.fullmatch(name):
            raise ServeError(
                Code.INVALID,
                spoken(
                    f"--engine-parameters: {pair[:80]!r} is no parameter of an engine. Write ENGINE.NAME=VALUE, with "
                    "commas between, like hf.slots=8,hf.dtype=bf16."
                ),
            )
        if name in found:
            raise ServeError(
                Code.INVALID, spoken(f"--engine-parameters: {name} is given twice. Remove one of them.")
            )
        found[name] = value
    return found


def trusts_code(parameters: Mapping[str, str]) -> bool:
    """Tell whether code of models without a configuration may run, by the word that every engine has for it."""
    return any(
        name.endswith(_TRUST) and value.strip().lower() in ("true", "1") for name, value in parameters.items()
    )
