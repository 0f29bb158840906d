"""One dimension of a metric."""


class Dimension:
    """A name with a value."""

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self.value = value

    def __str__(self) -> str:
        return f"{self.name}:{self.value}"
