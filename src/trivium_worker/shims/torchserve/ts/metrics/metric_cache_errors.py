"""Errors of the cache of metrics. Source: spec sheet `torchserve`, section 6.2, and the classes of the original."""


class GeneralMetricsCacheError(Exception):
    """An error in a metrics.yaml: to be imported; nothing raises it here, where none is read."""


class MetricsCacheIOError(IOError):
    """An error in reading a metrics.yaml: to be imported, as above."""


class MetricsCacheTypeError(TypeError):
    """A name, unit, list of dimensions or kind of another type."""


class MetricsCacheValueError(ValueError):
    """A unit that does not fit the kind of metric."""


class MetricsCacheKeyError(KeyError):
    """No such metric."""
