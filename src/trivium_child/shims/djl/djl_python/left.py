"""Stand-ins for the names of DJL's Python package that are not served yet: only using them is an error."""

from typing import Any, Callable


class Left:
    """A name without its function. Calling it, or looking anything up in it, raises NotImplementedError."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        raise self._refusal()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._refusal()

    def _refusal(self) -> NotImplementedError:
        return NotImplementedError(
            "%s is not served yet: it is left for a later issue. Write the handler without it, with Input and Output."
            % self._name
        )


def stand_in(name: str) -> Any:
    """The stand-in for a class or function."""
    return Left(name)


def module_of_stand_ins(module: str) -> Callable[[str], Any]:
    """A module's `__getattr__`: every name in it is a stand-in."""

    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in("%s.%s" % (module, name))

    return find
