from _typeshed import Incomplete

class Dimension:
    name: Incomplete
    value: Incomplete
    def __init__(self, name: str, value: str) -> None: ...
