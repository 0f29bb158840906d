"""DenseNetHandler, which is not served yet."""

from ts.unserved import unserved_class

DenseNetHandler = unserved_class(__name__, "DenseNetHandler")
