"""Keys of model-config.yaml: each is used, passed on, reported (no effect on results) or refused.

A row per key of the sheet's table (spec sheet `torchserve`, section 3.4). A key that is not here is the handler's own
and reaches it untouched, as all of them do. Values of YAML have types of their own: a number in quotes is none.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trivium.settings.kinds import SWITCH, TEXT, Kind, Whole
from trivium.settings.setting import Setting, Support


@dataclass(frozen=True, slots=True)
class Anything(Kind):
    """Takes any value."""

    template = "anything"

    def read(self, value: object) -> object:
        """Return the value."""
        return value


@dataclass(frozen=True, slots=True)
class Numbers(Kind):
    """Takes a list of whole numbers."""

    template = "a list of whole numbers"

    def read(self, value: object) -> object:
        """Return the list. Raises ValueError for anything else."""
        if not isinstance(value, list) or not all(type(one) is int and 0 <= one < 2**31 for one in value):
            raise ValueError
        return value


ANY, NUMBERS = Anything(), Numbers()
_PARALLEL = (
    "one model over several processes is not supported in this version: fit it to one device, or start the processes "
    "in the handler"
)

_ROWS = (
    Setting("minWorkers", Whole(1)),
    Setting("maxWorkers", Whole(1)),
    Setting("batchSize", Whole(1)),
    Setting("maxBatchDelay", Whole()),
    Setting("responseTimeout", Whole(1)),
    Setting("startupTimeout", Whole(1)),
    Setting("deviceType", TEXT),
    Setting("deviceIds", NUMBERS),
    Setting("jobQueueSize", Whole(1)),
    Setting("handler", ANY, support=Support.PASSED_ON),
    Setting("pt2", ANY, support=Support.PASSED_ON),
    Setting("trivium_warm_up", ANY, support=Support.PASSED_ON),
    Setting("micro_batching", ANY, support=Support.PASSED_ON),
    Setting("pippy", ANY, support=Support.PASSED_ON),
    Setting("deepspeed", ANY, support=Support.PASSED_ON),
    Setting("dali", ANY, support=Support.PASSED_ON),
    Setting("maxRetryTimeoutInSec", Whole()),
    Setting("clientTimeoutInMills", Whole()),
    Setting("useJobTicket", SWITCH),
    Setting("useVenv", SWITCH),
    Setting("sequenceMaxIdleMSec", Whole()),
    Setting("sequenceTimeoutMSec", Whole()),
    Setting("maxSequenceJobQueueSize", Whole(1)),
    Setting("maxNumSequence", Whole(1)),
    Setting("parallelType", TEXT, support=Support.REFUSED, how=_PARALLEL),
    Setting("parallelLevel", Whole(), support=Support.REFUSED, how=_PARALLEL, harmless=(0,)),
    Setting(
        "torchrun",
        ANY,
        support=Support.REFUSED,
        how="workers started by torchrun are not supported in this version: let the handler start its processes",
    ),
    Setting("continuousBatching", SWITCH),
    Setting("sequenceBatching", SWITCH),
    Setting("asyncCommunication", SWITCH),
)
ROWS: Mapping[str, Setting] = {row.name: row for row in _ROWS}
"""Key -> its row."""
