"""Names as user code gives them: text, or its bytes in UTF-8, as they come out of a tensor of TYPE_STRING.

The original's compiled module takes either wherever it asks for a string, and NVIDIA's own examples count on it.
"""

from typing import Any


def as_text(name: Any) -> Any:
    """Text for bytes; anything else as it is. UnicodeDecodeError for bytes that are no UTF-8."""
    return name.decode("utf-8") if isinstance(name, bytes) else name
