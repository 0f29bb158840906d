"""TextClassifier, which is not served yet."""

from ts.unserved import unserved_class

TextClassifier = unserved_class(__name__, "TextClassifier")
