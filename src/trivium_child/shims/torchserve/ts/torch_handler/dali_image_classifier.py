"""DALIImageClassifier, which is not served yet."""

from ts.unserved import unserved_class

DALIImageClassifier = unserved_class(__name__, "DALIImageClassifier")
