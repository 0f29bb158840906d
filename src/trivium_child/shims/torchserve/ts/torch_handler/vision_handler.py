"""VisionHandler, which is not served yet."""

from ts.unserved import unserved_class

VisionHandler = unserved_class(__name__, "VisionHandler")
