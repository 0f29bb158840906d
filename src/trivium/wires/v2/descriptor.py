"""ModelConfigMessage as a protobuf message class, built from the tables of `schema` in a private pool.

The pool is private because tritonclient registers messages of the same names in protobuf's default pool, and
one process may hold both. Knows the library; must not know what any key means.
"""

from typing import cast

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from trivium.codecs.protobuf_schema import file_of
from trivium.wires.v2.model_config import ModelConfigMessage
from trivium.wires.v2.schema import ENUMS, MESSAGES

_PACKAGE = "inference"
CONFIG_FILE = "model_config.proto"

POOL = DescriptorPool()
CONFIG_BYTES: bytes = file_of(CONFIG_FILE, _PACKAGE, MESSAGES, ENUMS).SerializeToString()
POOL.AddSerializedFile(CONFIG_BYTES)
_CLASS = GetMessageClass(POOL.FindMessageTypeByName(f"{_PACKAGE}.ModelConfig"))


def new_config() -> ModelConfigMessage:
    """An empty `inference.ModelConfigMessage`."""
    return cast(ModelConfigMessage, _CLASS())
