"""Reasons that are stated of requests by the v2 protocol and its extensions alone. See `types.reasons`."""

from typing import Final

RESTRICTED_API: Final = "restricted_api"  # header
OUTPUT_TWICE: Final = "output_twice"  # output
SHORT_BLOB: Final = "short_blob"  # input, lacking
LEFT_OVER: Final = "left_over"  # no metadata
HEADER_LENGTH: Final = "header_length"  # found, size
NO_DATA: Final = "no_data"  # input
SEVERAL_DATA: Final = "several_data"  # input, fields (where its data were given)
CONTENTS_AND_RAW: Final = "contents_and_raw"  # input
WRONG_CONTENTS: Final = "wrong_contents"  # input, datatype, found
UNKNOWN_DATATYPE: Final = "unknown_datatype"  # input
NO_CODING: Final = "no_coding"  # no metadata
RESERVED: Final = "reserved"  # key
PARAMETER: Final = "parameter"  # key, expected
NO_REGION_SIZE: Final = "no_region_size"  # tensor
REGION_OUTPUT: Final = "region_output"  # output, expected, found
NO_MEMBER: Final = "no_member"  # key
UNKNOWN_DEVICE_REGION: Final = "unknown_device_region"  # region
NO_DEVICE: Final = "no_device"  # region
NO_HANDLE: Final = "no_handle"  # region
NAMED_REPOSITORY: Final = "named_repository"  # no metadata
LOAD_PARAMETER: Final = "load_parameter"  # key
LOAD_TYPE: Final = "load_type"  # key, expected
UNREADABLE: Final = "unreadable"  # model; text, what is wrong with it, where that is known
NO_VERSION: Final = "no_version"  # model
LOG_FILE: Final = "log_file"  # no metadata
LOG_FORMAT: Final = "log_format"  # value
SETTING: Final = "setting"  # key, expected
TRACE_FILE: Final = "trace_file"  # no metadata
TRACE_LEVELS: Final = "trace_levels"  # no metadata
TRACE_NUMBER: Final = "trace_number"  # key, value
TRACE_RANGE: Final = "trace_range"  # key, value, least, most
TRACE_COUNT: Final = "trace_count"  # key, value
SEVERAL_VALUES: Final = "several_values"  # key
SEVERAL_ANSWERS: Final = "several_answers"  # model
