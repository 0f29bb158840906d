"""Keys of model-config.yaml: each is used, passed on, reported (no effect on results) or refused.

A row per key of the sheet's table (spec sheet `torchserve`, section 3.4). A key that is not here is the handler's own
and reaches it untouched, as all of them do. `harmless` is the value for which a reported or refused key makes no
difference.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class TorchServeKeyRole(Enum):
    """The role of a key: what a format does with it."""

    USED = "used"
    PASSED_ON = "passed on"
    REPORTED = "reported"
    REFUSED = "refused"


class ValueKind(Enum):
    """The kind of value that a key takes; the text is for people."""

    NUMBER = "a whole number"
    NUMBERS = "a list of whole numbers"
    FLAG = "true or false"
    TEXT = "text"
    ANY = "anything"


@dataclass(frozen=True, slots=True)
class TorchServeKey:
    """The role of a key, what its value is, the least number that counts, what is said where it is not served."""

    role: TorchServeKeyRole
    kind: ValueKind = ValueKind.ANY
    least: int = 0
    text: str = ""
    harmless: object = None


def _used(kind: ValueKind, least: int = 0) -> TorchServeKey:
    return TorchServeKey(TorchServeKeyRole.USED, kind, least)


def _refused(kind: ValueKind, text: str, harmless: object = None) -> TorchServeKey:
    return TorchServeKey(TorchServeKeyRole.REFUSED, kind, text=text, harmless=harmless)


def _reported(kind: ValueKind, text: str, harmless: object = None) -> TorchServeKey:
    return TorchServeKey(TorchServeKeyRole.REPORTED, kind, text=text, harmless=harmless)


_PARALLEL = (
    "one model over several processes is not supported in this version: fit it to one device, or start the processes "
    "in the handler"
)

ROWS: Mapping[str, TorchServeKey] = {
    "minWorkers": _used(ValueKind.NUMBER, 1),
    "maxWorkers": _used(ValueKind.NUMBER, 1),
    "batchSize": _used(ValueKind.NUMBER, 1),
    "maxBatchDelay": _used(ValueKind.NUMBER),
    "responseTimeout": _used(ValueKind.NUMBER, 1),
    "startupTimeout": _used(ValueKind.NUMBER, 1),
    "deviceType": _used(ValueKind.TEXT),
    "deviceIds": _used(ValueKind.NUMBERS),
    "jobQueueSize": _used(ValueKind.NUMBER, 1),
    "handler": TorchServeKey(TorchServeKeyRole.PASSED_ON),
    "pt2": TorchServeKey(TorchServeKeyRole.PASSED_ON),
    "micro_batching": TorchServeKey(TorchServeKeyRole.PASSED_ON),
    "pippy": TorchServeKey(TorchServeKeyRole.PASSED_ON),
    "deepspeed": TorchServeKey(TorchServeKeyRole.PASSED_ON),
    "dali": TorchServeKey(TorchServeKeyRole.PASSED_ON),
    "maxRetryTimeoutInSec": _used(ValueKind.NUMBER),
    "clientTimeoutInMills": _used(ValueKind.NUMBER),
    "useJobTicket": _used(ValueKind.FLAG),
    "useVenv": _reported(ValueKind.FLAG, "the handler runs under the server's own interpreter", False),
    "sequenceMaxIdleMSec": _used(ValueKind.NUMBER),
    "sequenceTimeoutMSec": _used(ValueKind.NUMBER),
    "maxSequenceJobQueueSize": _used(ValueKind.NUMBER, 1),
    "maxNumSequence": _used(ValueKind.NUMBER, 1),
    "parallelType": _refused(
        ValueKind.TEXT,
        _PARALLEL,
    ),
    "parallelLevel": _refused(
        ValueKind.NUMBER,
        _PARALLEL,
        0,
    ),
    "torchrun": _refused(
        ValueKind.ANY,
        "workers started by torchrun are not supported in this version: let the handler start its processes",
    ),
    "continuousBatching": _used(ValueKind.FLAG),
    "sequenceBatching": _used(ValueKind.FLAG),
    "asyncCommunication": _used(ValueKind.FLAG),
}
