"""TextHandler, which is not served yet."""

from ts.unserved import unserved_class

TextHandler = unserved_class(__name__, "TextHandler")
