"""Made-up data: what an instance runs before it takes work, and with what the state of a sequence begins.

Values of a spec; `core/warmup` makes arrays of them.
"""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from trivium.types.datatype import DataType


class SyntheticFill(Enum):
    """Names how the made-up data of a warm-up input comes about."""

    ZERO = "zero"
    RANDOM = "random"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class WarmupInput:
    """One input of a warm-up run; `path` holds raw little-endian data (BYTES length-prefixed) for FILE."""

    name: str
    datatype: DataType
    dims: tuple[int, ...]
    fill: SyntheticFill
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Warmup:
    """Run `times` times on every instance before it is ready, with `rows` rows (0: no batch dimension)."""

    name: str
    rows: int
    times: int
    inputs: tuple[WarmupInput, ...]
