"""Names that handlers import and that are not served yet: they exist, and say so when they are used."""

from typing import Any


class NotServedYet(NotImplementedError):
    """A part of TorchServe that comes with the issue that completes its dialect."""


def refusal(name: str) -> NotServedYet:
    """The error for a name."""
    return NotServedYet(
        "%s is not served yet: it comes with the issue that completes the TorchServe dialect. Write what you need "
        "of it into the handler, or extend ts.torch_handler.base_handler.BaseHandler." % name
    )


def unserved_class(module: str, name: str) -> Any:
    """A class of that name, to import and to extend; making an object of it, or of a subclass, raises."""

    def make(cls: Any, *arguments: Any, **named: Any) -> Any:
        raise refusal("%s.%s" % (module, name))

    return type(name, (), {"__new__": make, "__module__": module})
