import enum

class MetricTypes(enum.Enum):
    COUNTER: str
    GAUGE: str
    HISTOGRAM: str
