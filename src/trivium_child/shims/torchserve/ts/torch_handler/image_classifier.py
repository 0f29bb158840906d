"""ImageClassifier, which is not served yet."""

from ts.unserved import unserved_class

ImageClassifier = unserved_class(__name__, "ImageClassifier")
