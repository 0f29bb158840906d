"""Reasons that the codecs state when the data of a request cannot be read. See `types.reasons`."""

from typing import Final

UNFIT: Final = "unfit"  # input
UNDECODED: Final = "undecoded"  # media_type, that of the form the body was read in, empty if it is in none
NO_JSON: Final = "no_json"  # found
NO_OBJECT: Final = "no_object"  # key, if one has it
MANY_STRINGS: Final = "many_strings"  # input, expected, found
CUT_LENGTH: Final = "cut_length"  # input, found (bytes that are left)
CUT_STRING: Final = "cut_string"  # input, expected, found
ELEMENT: Final = "element"  # datatype
NO_LIST: Final = "no_list"  # no metadata
ELEMENT_COUNT: Final = "element_count"  # input
NOT_IN_JSON: Final = "not_in_json"  # input, datatype
UNSENDABLE: Final = "unsendable"  # datatype, as an output in JSON
RAW_INPUTS: Final = "raw_inputs"  # model, count
RAW_SIZE: Final = "raw_size"  # expected, found
RAW_SHAPE: Final = "raw_shape"  # input
RAW_STRINGS: Final = "raw_strings"  # input
NO_SCALAR: Final = "no_scalar"  # key, as well as within, if it is in an object
