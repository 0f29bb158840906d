"""A class whose state, when a file brings it back, writes a marker: what a hostile skops file has."""

from typing import Any


class MarkedState:
    """Writes the file `path` when it is brought back from any file. It needs no library."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]
        with open(self.path, "a") as file:
            file.write("x")
