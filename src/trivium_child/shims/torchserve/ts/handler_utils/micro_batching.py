"""MicroBatching, which is not served yet."""

from ts.unserved import unserved_class

MicroBatching = unserved_class(__name__, "MicroBatching")
