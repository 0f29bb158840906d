"""Where tensors may be, and traces: accepted, and of no effect, since tensors are in the computer's own memory."""

import enum
from typing import Any


class MemoryType(enum.Enum):
    """Kinds of memory, by the original's names."""

    TRITONSERVER_MEMORY_GPU = 0
    TRITONSERVER_MEMORY_CPU = 1
    DEFAULT = 2


class PreferredMemory:
    """Where the outputs of another model are wanted. They come in the CPU's memory, whatever is preferred."""

    __slots__ = ("device_id", "memory_type")

    def __init__(self, preferred_memory_type: MemoryType, preferred_device_id: int = 0) -> None:
        self.memory_type = MemoryType(preferred_memory_type)
        self.device_id = preferred_device_id


class InferenceTrace:
    """There is none: requests are not traced yet."""

    __slots__ = ()

    def get_context(self) -> Any:
        """None."""
        return None
