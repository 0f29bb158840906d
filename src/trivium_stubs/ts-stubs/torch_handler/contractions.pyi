from _typeshed import Incomplete

CONTRACTION_MAP: Incomplete

def expand(text: str) -> str: ...
