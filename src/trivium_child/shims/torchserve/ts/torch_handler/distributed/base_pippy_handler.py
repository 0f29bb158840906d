"""BasePippyHandler, which is not served yet."""

from ts.unserved import unserved_class

BasePippyHandler = unserved_class(__name__, "BasePippyHandler")
