"""The server that the protocol comes from hands over its words for errors, its documents of models, and its lists."""

from dataclasses import dataclass
from typing import Protocol

from trivium.types.errors import Code, ServeError
from trivium.types.spec import ModelSpec
from trivium.wires.v2.words import OWN_ERRORS, OWN_RPC_ERRORS, ErrorTranslator, RpcErrorTranslator


class ModelDocuments(Protocol):
    """Describes models where the protocol has a form of that server's own."""

    def platform(self, spec: ModelSpec) -> str:
        """Return what a model runs on, as its metadata say it."""
        ...

    def config_json(self, spec: ModelSpec) -> bytes:
        """Return the configuration of a model as JSON. NOT_FOUND where there is no such form."""
        ...

    def config_bytes(self, spec: ModelSpec) -> bytes:
        """Return it as a serialised `inference.ModelConfig`. NOT_FOUND where there is no such form."""
        ...


class NoDocuments:
    """Implements `ModelDocuments` where nobody has handed any over."""

    def platform(self, spec: ModelSpec) -> str:
        """Return the engine."""
        return spec.engine

    def config_json(self, spec: ModelSpec) -> bytes:
        """Raise NOT_FOUND."""
        raise ServeError(
            Code.NOT_FOUND,
            f"Model '{spec.name}': this server has no configuration of it to show. Ask for metadata.",
        )

    def config_bytes(self, spec: ModelSpec) -> bytes:
        """Raise NOT_FOUND."""
        return self.config_json(spec)


NO_DOCUMENTS = NoDocuments()


@dataclass(frozen=True, slots=True)
class V2Original:
    """Holds what is that server's own. Its documents are everybody's; its words for errors, and the extensions that it
    lists, have clients of a server that stands in for it.
    """

    errors: ErrorTranslator = OWN_ERRORS
    rpc_errors: RpcErrorTranslator = OWN_RPC_ERRORS
    documents: ModelDocuments = NO_DOCUMENTS
    extensions: tuple[str, ...] = ()
