"""TRTLLMHandler, which is not served yet."""

from ts.unserved import unserved_class

TRTLLMHandler = unserved_class(__name__, "TRTLLMHandler")
