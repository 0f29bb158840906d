"""Reasons that the core and the front ends state when they refuse or fail something.

A reason is an open string with metadata by name (see `ErrorInfo`); the comment behind each lists them. Whoever raises
an error owns its reason: `codecs.data_reasons` and each dialect have reasons of their own, and every wire has one table
from reasons to its own texts.
"""

from typing import Final

UNKNOWN_MODEL: Final = "unknown_model"  # model
UNKNOWN_VERSION: Final = "unknown_version"  # model, version
NOT_SERVING: Final = "not_serving"  # model, version, state
GIVEN_UP: Final = "given_up"  # model
SCALED_TO_NONE: Final = "scaled_to_none"  # model, version
ANSWER_SIZE: Final = "answer_size"  # model, most, size
UNLIKE_ANSWER: Final = "unlike_answer"  # model, output, found, expected
ITEM_DEADLINE: Final = "item_deadline"  # model; its own limit, not the client's
QUEUE_FULL: Final = "queue_full"  # model
UNKNOWN_CALL: Final = "unknown_call"  # model, topic
CALL_TWICE: Final = "call_twice"  # model, topic
NO_FUNCTION: Final = "no_function"  # model, function
DIED_WITH_MANY: Final = "died_with_many"  # model, killed; the instance had many items in work
UNREAD: Final = "unread"  # model; its answer was not read while others waited for the model
UNKNOWN_TOKEN: Final = "unknown_token"  # token
SEVERAL_PARTS: Final = "several_parts"  # model
ENDLESS: Final = "endless"  # chain
INPUT_COUNT: Final = "input_count"  # model, least, most, got, missing
UNKNOWN_INPUT: Final = "unknown_input"  # model, input
INPUT_TWICE: Final = "input_twice"  # input
UNKNOWN_OUTPUT: Final = "unknown_output"  # model, output
DATATYPE: Final = "datatype"  # model, input, found, expected
SHAPE: Final = "shape"  # model, input, found, expected, has_rows
NO_SHAPE: Final = "no_shape"  # model, input
TOO_MANY_ROWS: Final = "too_many_rows"  # model, most
ROWS_APART: Final = "rows_apart"  # model, input
FEW_STRINGS: Final = "few_strings"  # input, expected, found
BYTE_SIZE: Final = "byte_size"  # input, expected, found
BODY_SIZE: Final = "body_size"  # most
NO_ROUTE: Final = "no_route"  # path, allow (empty)
NO_METHOD: Final = "no_method"  # path, allow: the methods that there are, with commas between
NO_SERVICE: Final = "no_service"  # no metadata; of gRPC
NOT_HTTP: Final = "not_http"  # the bytes are no request
UNKNOWN_REGION: Final = "unknown_region"  # region
REGION_TWICE: Final = "region_twice"  # region
REGION_OFFSET: Final = "region_offset"  # region
REGION_SIZE: Final = "region_size"  # region
UNOPENED: Final = "unopened"  # key
BEYOND_MEMORY: Final = "beyond_memory"  # region
NO_REGIONS: Final = "no_regions"  # no metadata
NOT_BY_CLIENTS: Final = "not_by_clients"  # no metadata
NOT_LOADED: Final = "not_loaded"  # model, version, text
NOT_CACHEABLE: Final = "not_cacheable"  # model, version
REGISTERED_TWICE: Final = "registered_twice"  # model, version
DEFAULT_VERSION: Final = "default_version"  # model, version; it cannot be removed while there are others
KILLED: Final = "killed"  # model, killed; its process was, by a signal from outside that leaves no choice
NO_MEMORY: Final = "no_memory"  # model, version
INVALID_GRAPH: Final = "invalid_graph"  # no metadata; found before anything was loaded
NO_ENGINE: Final = "no_engine"  # model, version, engine
NO_PACKAGES: Final = "no_packages"  # model, version; those that it names could not be installed
TRANSLATION: Final = "translation"  # words, as the original has them
SCORING: Final = "scoring"  # error_code, as MLflow has it; a body that scores a model of MLflow
TRACE_UNFIT: Final = "trace_unfit"  # why
NO_SEQUENCE: Final = "no_sequence"  # model
SEQUENCE_ROWS: Final = "sequence_rows"  # model
UNSTARTED: Final = "unstarted"  # model, sequence, idle; it was ended after that many seconds
FIELD: Final = "field"  # field, of a request to generate
UNSERVED_FIELD: Final = "unserved_field"  # the same
GENERATION_FIELD: Final = "generation_field"  # model, field and names: fields by their neutral names
TOO_LONG: Final = "too_long"  # the same; a prompt leaves no room for a token
