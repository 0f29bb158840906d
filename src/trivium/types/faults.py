"""What is wrong, as facts beside the sentence that says it: for wires that must say it in another server's words.

Kinds and the names of their facts only; what is made of them, and which status they have, each wire's own table says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """What is wrong, and behind it the facts that are told of it."""

    # of routes
    METHOD = auto()  # path
    RESTRICTED_API = auto()  # header
    # of what is refused for no reason that has a kind
    UNFIT = auto()  # input
    # of what should be JSON of some form
    NO_JSON = auto()  # found
    NO_OBJECT = auto()  # nothing, or key
    # of models
    UNKNOWN_MODEL = auto()  # model
    UNKNOWN_VERSION = auto()  # model, version
    NOT_SERVING = auto()  # model, version
    DECOUPLED = auto()  # model
    ENDLESS = auto()  # chain
    # of inputs and outputs, by what the model takes
    INPUT_COUNT = auto()  # model, least, most, got, missing
    UNKNOWN_INPUT = auto()  # model, input
    INPUT_TWICE = auto()  # input
    OUTPUT_TWICE = auto()  # output
    UNKNOWN_OUTPUT = auto()  # model, output
    DATATYPE = auto()  # model, input, found, expected
    SHAPE = auto()  # model, input, found, expected, has_rows
    NO_SHAPE = auto()  # model, input
    TOO_MANY_ROWS = auto()  # model, most
    ROWS_APART = auto()  # model, input
    # of their data
    BYTE_SIZE = auto()  # input, expected, found
    FEW_STRINGS = auto()  # input, expected, found
    MANY_STRINGS = auto()  # input, expected, found
    CUT_LENGTH = auto()  # input, found (bytes that are left)
    CUT_STRING = auto()  # input, expected, found
    ELEMENT = auto()  # datatype
    NO_LIST = auto()  # nothing
    ELEMENT_COUNT = auto()  # input
    NOT_IN_JSON = auto()  # input, datatype
    UNSENDABLE = auto()  # datatype, as an output in JSON
    SHORT_BLOB = auto()  # input, lacking
    LEFT_OVER = auto()  # nothing
    HEADER_LENGTH = auto()  # found, size
    NO_DATA = auto()  # input
    CONTENTS_AND_RAW = auto()  # input
    WRONG_CONTENTS = auto()  # input, datatype, found
    UNKNOWN_DATATYPE = auto()  # input
    RAW_INPUTS = auto()  # model, count
    RAW_SIZE = auto()  # expected, found
    RAW_SHAPE = auto()  # input
    RAW_STRINGS = auto()  # input
    NO_CODING = auto()  # nothing
    BODY_SIZE = auto()  # most
    # of parameters
    RESERVED = auto()  # key
    PARAMETER = auto()  # key, expected
    NO_SCALAR = auto()  # key, as well as within, if it is in an object
    # of clients' shared memory
    UNKNOWN_REGION = auto()  # region
    REGION_TWICE = auto()  # region
    REGION_OFFSET = auto()  # region
    REGION_SIZE = auto()  # region
    NO_REGION_SIZE = auto()  # tensor
    REGION_OUTPUT = auto()  # output, expected, found
    UNOPENED = auto()  # key
    BEYOND_MEMORY = auto()  # region
    NO_MEMBER = auto()  # key
    UNKNOWN_DEVICE_REGION = auto()  # region
    NO_DEVICE = auto()  # region
    NO_REGIONS = auto()  # nothing
    NO_HANDLE = auto()  # region
    # of loads and settings
    NAMED_REPOSITORY = auto()  # nothing
    NOT_BY_CLIENTS = auto()  # nothing
    LOAD_PARAMETER = auto()  # key
    LOAD_TYPE = auto()  # key, expected
    UNREADABLE = auto()  # model; text, what is wrong with it, where that is known
    NOT_LOADED = auto()  # model, version, text
    NO_ENGINE = auto()  # model, version, engine
    NO_VERSION = auto()  # model
    LOG_FILE = auto()  # nothing
    LOG_FORMAT = auto()  # value
    SETTING = auto()  # key, expected
    TRACE_FILE = auto()  # nothing
    TRACE_UNFIT = auto()  # why
    TRACE_LEVELS = auto()  # nothing
    TRACE_NUMBER = auto()  # key, value
    TRACE_RANGE = auto()  # key, value, least, most
    TRACE_COUNT = auto()  # key, value
    SEVERAL_VALUES = auto()  # key
    # of sequences
    SEQUENCE = auto()  # told
    # of answers
    SEVERAL_ANSWERS = auto()  # model


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind, and its facts by name."""

    kind: Kind
    facts: Mapping[str, object]


def fault(kind: Kind, **facts: object) -> Fault:
    """In short."""
    return Fault(kind, facts)
