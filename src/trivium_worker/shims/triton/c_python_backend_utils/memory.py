"""Preferences for the memory of tensors: accepted, without effect, since all are in the computer's own. And traces."""

import enum
import json

from c_python_backend_utils.names import unfit, whole
from trivium_worker.wire.values import Item


class MemoryType(enum.Enum):
    """Kinds of memory, by the original's names."""

    TRITONSERVER_MEMORY_GPU = 0
    TRITONSERVER_MEMORY_CPU = 1
    DEFAULT = 2


class PreferredMemory:
    """The memory in which the outputs of another model are wanted. They come in the CPU's, whatever is preferred."""

    __slots__ = ("device_id", "memory_type")

    def __init__(self, preferred_memory_type: MemoryType, preferred_device_id: int = 0) -> None:
        if not isinstance(preferred_memory_type, MemoryType):
            raise unfit("PreferredMemory: preferred_memory_type", preferred_memory_type, "a MemoryType")
        self.memory_type = preferred_memory_type
        self.device_id = whole(
            "PreferredMemory: preferred_device_id", preferred_device_id, -(2**63), 2**63 - 1
        )


class InferenceTrace:
    """The trace of a client's request, if it has one: handed to a request for another model, it makes that one a
    part of it. One that a model has made itself is nobody's.
    """

    __slots__ = ("_context", "number")

    def __init__(self) -> None:
        self.number = 0
        self._context = ""

    @classmethod
    def of_item(cls, item: Item) -> "InferenceTrace":
        """The trace of this item."""
        trace = cls()
        trace.number = item.number
        trace._context = item.context
        return trace

    def get_context(self) -> str | None:
        """W3C Trace Context as JSON, by which spans of the model's own become a part of it; None where there is none,
        as in traces that are written to files.
        """
        return json.dumps({"traceparent": self._context}) if self._context else None
