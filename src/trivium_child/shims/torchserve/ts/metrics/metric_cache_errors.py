"""What the cache of metrics raises. Source: spec sheet `torchserve`, section 6.2, and the classes of the original."""


class GeneralMetricsCacheError(Exception):
    """Anything else."""


class MetricsCacheIOError(IOError):
    """A file that cannot be read."""


class MetricsCacheTypeError(TypeError):
    """A name, unit, list of dimensions or kind of another type."""


class MetricsCacheValueError(ValueError):
    """A unit that does not fit the kind of metric."""


class MetricsCacheKeyError(KeyError):
    """No such metric."""
