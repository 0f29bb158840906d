"""BaseDeepSpeedHandler, which is not served yet."""

from ts.unserved import unserved_class

BaseDeepSpeedHandler = unserved_class(__name__, "BaseDeepSpeedHandler")
