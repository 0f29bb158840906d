import enum
from _typeshed import Incomplete
from trivium_worker.wire.values import Item as Item

class MemoryType(enum.Enum):
    TRITONSERVER_MEMORY_GPU: int
    TRITONSERVER_MEMORY_CPU: int
    DEFAULT: int

class PreferredMemory:
    memory_type: Incomplete
    device_id: Incomplete
    def __init__(self, preferred_memory_type: MemoryType, preferred_device_id: int = 0) -> None: ...

class InferenceTrace:
    number: int
    def __init__(self) -> None: ...
    @classmethod
    def of_item(cls, item: Item) -> InferenceTrace: ...
    def get_context(self) -> str | None: ...
