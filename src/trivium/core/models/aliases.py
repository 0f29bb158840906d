"""Other names of the models that serve: whose each of them is."""

from collections.abc import Sequence


class Aliases:
    """Knows the model that a request means which calls it by another name than its own. Used on the loop only."""

    def __init__(self) -> None:
        self._models: dict[str, list[str]] = {}  # alias -> the models that have it
        self._aliases: dict[str, Sequence[str]] = {}

    def put(self, model: str, aliases: Sequence[str]) -> None:
        """Have the model be called by these, and by none that it had before."""
        for alias in self._aliases.pop(model, ()):
            self._models[alias].remove(model)
            if not self._models[alias]:
                del self._models[alias]
        if aliases := tuple(dict.fromkeys(aliases)):
            self._aliases[model] = aliases
            for alias in aliases:
                self._models.setdefault(alias, []).append(model)

    def meant(self, name: str) -> tuple[str, ...]:
        """Return the models that have this alias; more than one where it tells none from another."""
        return tuple(self._models.get(name, ()))
