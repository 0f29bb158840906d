"""Options of TorchServe's management: what an operator has set about registering models."""

from dataclasses import dataclass, field

from trivium.servers.torchserve.wire.config import TorchServeConfig
from trivium.servers.torchserve.words.model_urls import ModelStore, read_patterns
from trivium.types.protocol_context import ProtocolContext


@dataclass(frozen=True, slots=True)
class ManagementOptions:
    """Holds how models are managed on one listener.

    Models are registered from the `store`, with so many `workers` where a registration does not say, unless the model
    API is off (not `registers`). Without `may_change` clients of this listener may change nothing. `exact`: errors have
    the original's texts.
    """

    store: ModelStore = field(default_factory=ModelStore)
    workers: int = 0
    registers: bool = True
    may_change: bool = True
    exact: bool = False


def management_options(context: ProtocolContext) -> ManagementOptions:
    """Read what the operator has set. Raises INVALID for patterns that cannot be read."""
    own = context.own.read(TorchServeConfig)
    return ManagementOptions(
        ModelStore(own.model_store, read_patterns(own.allowed_urls)),
        own.default_workers,
        not own.no_model_api,
        context.may_change,
        context.as_original,
    )
