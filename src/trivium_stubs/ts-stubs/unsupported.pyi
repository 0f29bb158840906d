from _typeshed import Incomplete
from trivium_worker.dialects.stand_ins import FINDER as FINDER

CLASSES: Incomplete
FUNCTIONS: Incomplete
PACKAGES: Incomplete

class NotSupported(NotImplementedError): ...

def refusal(name: str) -> NotSupported: ...
