"""VLLMHandler, which is not served yet."""

from ts.unserved import unserved_class

VLLMHandler = unserved_class(__name__, "VLLMHandler")
