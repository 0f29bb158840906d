"""Triton's own words for what is wrong: one table of kinds for both wires, and one of what gRPC says otherwise.

Source: spec sheet `triton`, sections 4.2, 4.5, 4.6, 4.9 to 4.12 and 5.3. What has no row keeps the sentence that it
has. Knows no wire; what status a code has is in `error_codes`.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from trivium.dialects.triton.error_codes import ErrorCode
from trivium.dialects.triton.text_forms import (
    contents_type,
    element,
    input_count,
    many_strings,
    no_backend,
    no_object,
    not_loaded,
    parameter,
    rpc_parameter,
    shape,
)
from trivium.types.errors import Code, ServeError
from trivium.types.faults import Kind

Facts = Mapping[str, object]
Form = Callable[[Facts], str]


class Row(NamedTuple):
    """A code and a text with facts in braces, or what makes it. `has_id`: the request's id stands in front.
    `is_plain`: over HTTP the answer has the content type text/plain.
    """

    code: ErrorCode
    text: str | Form
    has_id: bool = False
    is_plain: bool = False


class Said(NamedTuple):
    """What a client is told; `is_plain` as in `Row`."""

    code: ErrorCode
    text: str
    is_plain: bool = False


_INTERNAL, _INVALID = ErrorCode.INTERNAL, ErrorCode.INVALID_ARG
_ONE_OF = (
    "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', "
    "'shared_memory_region' in 'parameters'. But "
)
NO_FIELD = f"{_ONE_OF}no field is set"
SEVERAL_FIELDS = f"{_ONE_OF}set {{fields}}"

ROWS: Mapping[Kind, Row] = {
    Kind.NO_JSON: Row(_INTERNAL, "failed to parse the request JSON buffer: {found}"),
    Kind.NO_OBJECT: Row(_INTERNAL, no_object),
    Kind.UNKNOWN_MODEL: Row(ErrorCode.NOT_FOUND, "Request for unknown model: '{model}' is not found"),
    Kind.UNKNOWN_VERSION: Row(
        ErrorCode.NOT_FOUND, "Request for unknown model: '{model}' version {version} is not found"
    ),
    Kind.NOT_SERVING: Row(
        ErrorCode.NOT_FOUND, "Request for unknown model: '{model}' has no available versions"
    ),
    Kind.DECOUPLED: Row(
        ErrorCode.UNSUPPORTED,
        "HTTP end point doesn't support models with decoupled transaction policy",
        False,
        True,
    ),
    Kind.INPUT_COUNT: Row(_INVALID, input_count, True),
    Kind.UNKNOWN_INPUT: Row(_INVALID, "unexpected inference input '{input}' for model '{model}'"),
    Kind.INPUT_TWICE: Row(_INVALID, "input '{input}' already exists in request", True),
    Kind.OUTPUT_TWICE: Row(_INVALID, "output '{output}' already exists in request", True),
    Kind.UNKNOWN_OUTPUT: Row(_INVALID, "unexpected inference output '{output}' for model '{model}'"),
    Kind.DATATYPE: Row(
        _INVALID,
        "inference input '{input}' data-type is '{found}', but model '{model}' expects '{expected}'",
        True,
    ),
    Kind.SHAPE: Row(_INVALID, shape, True),
    Kind.NO_SHAPE: Row(
        _INVALID, "input '{input}' has no shape but model requires batch dimension for '{model}'", True
    ),
    Kind.TOO_MANY_ROWS: Row(_INVALID, "inference request batch-size must be <= {most} for '{model}'", True),
    Kind.ROWS_APART: Row(
        _INVALID, "input '{input}' batch size does not match other inputs for '{model}'", True
    ),
    Kind.BYTE_SIZE: Row(
        _INVALID,
        "input byte size mismatch for input '{input}' for model '{model}'. Expected {expected}, got {found}",
        True,
    ),
    Kind.FEW_STRINGS: Row(
        _INVALID,
        "expected {expected} string elements for inference input '{input}' for model '{model}', got {found}",
        True,
    ),
    Kind.MANY_STRINGS: Row(_INVALID, many_strings, True),
    Kind.CUT_LENGTH: Row(
        _INVALID,
        "incomplete string length indicator for inference input '{input}' for model '{model}', expecting 4 bytes but "
        "only {found} bytes available. Please make sure the string length indicator is in one buffer.",
        True,
    ),
    Kind.CUT_STRING: Row(
        _INVALID,
        "incomplete string data for inference input '{input}', expecting string of length {expected} but only {found} "
        "bytes available",
        False,
        True,
    ),
    Kind.ELEMENT: Row(_INTERNAL, element),
    Kind.NO_LIST: Row(_INTERNAL, "Unable to parse 'data': attempt to access JSON non-array as array"),
    Kind.ELEMENT_COUNT: Row(
        _INTERNAL, "Unable to parse 'data': Shape does not match true shape of 'data' field"
    ),
    Kind.NOT_IN_JSON: Row(
        _INVALID,
        "receiving {datatype} data via JSON is not supported. Please use the binary data format for input {input}",
    ),
    Kind.UNSENDABLE: Row(
        _INVALID,
        "sending {datatype} data via JSON is not supported. Please use the binary data format for output",
        False,
        True,
    ),
    Kind.SHORT_BLOB: Row(
        _INVALID,
        "unexpected size for input '{input}', expecting {lacking} additional bytes for model '{model}'",
    ),
    Kind.LEFT_OVER: Row(_INVALID, "unexpected additional input data for model '{model}'"),
    Kind.HEADER_LENGTH: Row(
        _INVALID, "inference header size should be in range (0, {size}), got: {found}", False, True
    ),
    Kind.NO_DATA: Row(_INVALID, NO_FIELD),
    Kind.UNKNOWN_DATATYPE: Row(_INVALID, "invalid datatype for input {input}"),
    Kind.RAW_INPUTS: Row(
        _INVALID,
        "Raw request must only have 1 input (found 1) to be deduced but got {count} inputs in '{model}' model "
        "configuration",
        True,
    ),
    Kind.RAW_SIZE: Row(
        _INVALID,
        "input byte size mismatch for input 'raw_input' for model '{model}'. Expected {expected}, got {found}",
        True,
    ),
    Kind.RAW_SHAPE: Row(
        _INVALID,
        "The shape of the raw input '{input}' can not be deduced because there are more than one variable-sized "
        "dimension",
        True,
    ),
    Kind.RAW_STRINGS: Row(
        _INVALID, "For BYTE datatype raw input '{input}', the model must have input shape [1]", True
    ),
    Kind.NO_CODING: Row(ErrorCode.UNSUPPORTED, "Unsupported compression type", False, True),
    Kind.BODY_SIZE: Row(
        _INVALID,
        "the request's body exceeds the maximum input size of {most} bytes. Use --http-max-input-size to increase the "
        "limit.",
    ),
    Kind.RESERVED: Row(
        _INVALID,
        "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
    ),
    Kind.PARAMETER: Row(_INTERNAL, parameter),
    Kind.NO_SCALAR: Row(
        _INVALID, "parameter '{key}' has invalid type. It should be either 'int', 'bool', or 'string'."
    ),
    Kind.UNFIT: Row(_INVALID, "The schema can not convert input '{input}' to tensor with proper shape"),
    Kind.UNKNOWN_REGION: Row(ErrorCode.NOT_FOUND, "Unable to find shared memory region: '{region}'"),
    Kind.REGION_TWICE: Row(ErrorCode.ALREADY_EXISTS, "shared memory region '{region}' already in manager"),
    Kind.REGION_OFFSET: Row(_INVALID, "Invalid offset for shared memory region: '{region}'"),
    Kind.REGION_SIZE: Row(_INVALID, "Invalid offset + byte size for shared memory region: '{region}'"),
    Kind.REGION_OUTPUT: Row(
        _INTERNAL,
        "shared memory size specified with the request for output '{output}' ({found} bytes) should be at least "
        "{expected} bytes to hold the results",
        False,
        True,
    ),
    Kind.UNOPENED: Row(_INTERNAL, "Unable to open shared memory region: '{key}'"),
    Kind.BEYOND_MEMORY: Row(_INVALID, "failed to register shared memory region '{region}': invalid args"),
    Kind.NO_MEMBER: Row(_INVALID, "Shared memory register request has no '{key}' field"),
    Kind.NO_REGIONS: Row(
        ErrorCode.UNSUPPORTED,
        "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
    ),
    Kind.NO_DEVICE: Row(
        _INVALID, "failed to register CUDA shared memory region: '{region}', GPUs not supported"
    ),
    Kind.NOT_BY_CLIENTS: Row(
        ErrorCode.UNAVAILABLE, "explicit model load / unload is not allowed if polling is enabled"
    ),
    Kind.NO_HANDLE: Row(_INVALID, "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t"),
    Kind.UNKNOWN_DEVICE_REGION: Row(
        ErrorCode.NOT_FOUND, "Unable to find cuda shared memory region: '{region}'"
    ),
    Kind.NAMED_REPOSITORY: Row(ErrorCode.UNSUPPORTED, "'repository_name' specification is not supported"),
    Kind.NOT_LOADED: Row(_INVALID, not_loaded),
    Kind.NO_ENGINE: Row(_INVALID, no_backend),
    Kind.NO_VERSION: Row(
        _INVALID,
        "load failed for model '{model}': at least one version must be available under the version policy of model "
        "'{model}'\n",
    ),
    Kind.LOAD_PARAMETER: Row(_INTERNAL, "unexpected error on creating Triton parameter"),
    Kind.LOAD_TYPE: Row(_INTERNAL, "attempt to access JSON non-string as string"),
    Kind.UNREADABLE: Row(_INTERNAL, "failed to load '{model}', failed to poll from model repository"),
    Kind.SETTING: Row(_INTERNAL, "attempt to access JSON non-{expected} as {expected}"),
    Kind.LOG_FILE: Row(
        ErrorCode.UNSUPPORTED, "log file location can not be updated through network protocol"
    ),
    Kind.LOG_FORMAT: Row(ErrorCode.UNAVAILABLE, "invalid argument for --log_format, got: {value}"),
    Kind.TRACE_FILE: Row(
        ErrorCode.UNSUPPORTED, "trace file location can not be updated through network protocol"
    ),
    Kind.TRACE_UNFIT: Row(_INVALID, "Attempting to set invalid trace setting :{why}"),
    Kind.TRACE_LEVELS: Row(_INVALID, "Expect only one trace level 'OFF' is specified"),
    Kind.TRACE_NUMBER: Row(_INVALID, "Unable to parse '{key}', got: {value}"),
    Kind.TRACE_RANGE: Row(
        _INVALID, "Unable to parse '{key}', value is out of range [ {least}, {most} ], got: {value}"
    ),
    Kind.TRACE_COUNT: Row(_INVALID, "Unable to parse '{key}'. Expecting value >= -1, got:{value}"),
    Kind.SEQUENCE: Row(_INVALID, "{told}"),
    Kind.SEVERAL_ANSWERS: Row(
        _INTERNAL,
        "generate expects model to produce exactly 1 response, use generate stream for model that generates various "
        "number of responses",
    ),
}

RPC_ROWS: Mapping[Kind, Row] = {
    Kind.DECOUPLED: Row(
        ErrorCode.UNSUPPORTED, "ModelInfer RPC doesn't support models with decoupled transaction policy"
    ),
    Kind.NO_DATA: Row(
        _INVALID, "unable to find data for input tensor '{input}' for model '{model}' in request."
    ),
    Kind.CONTENTS_AND_RAW: Row(
        _INVALID,
        "contents field must not be specified when using raw_input_contents for '{input}' for model '{model}'",
    ),
    Kind.WRONG_CONTENTS: Row(_INVALID, contents_type),
    Kind.PARAMETER: Row(_INVALID, rpc_parameter),
    Kind.RESERVED: Row(
        _INVALID,
        "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with "
        "'triton_' are allowed: triton_enable_empty_final_response",
    ),
    Kind.RESTRICTED_API: Row(
        ErrorCode.UNAVAILABLE, "This protocol is restricted, expecting header '{header}'"
    ),
    Kind.LOAD_PARAMETER: Row(_INVALID, "unrecognized load parameter '{key}'."),
    Kind.SETTING: Row(_INVALID, "expect {expected} for '{key}'"),
    Kind.TRACE_COUNT: Row(_INVALID, "Unable to parse '{key}'. Expecting value >= -1, got: {value}"),
    Kind.LOG_FORMAT: Row(_INVALID, "invalid argument for log_format, got: {value}"),
    Kind.SEVERAL_VALUES: Row(_INVALID, "expect only 1 value for '{key}'"),
    Kind.NO_DEVICE: Row(_INVALID, "failed to register shared memory region: invalid args"),
    Kind.NO_REGION_SIZE: Row(
        _INVALID,
        "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor '{tensor}'",
    ),
    Kind.LOAD_TYPE: Row(_INVALID, "invalid value type for load parameter '{key}', expected {expected}."),
}
"""What is said otherwise over gRPC."""

_FIXED: Mapping[Code, Row] = {
    Code.QUEUE_FULL: Row(ErrorCode.UNAVAILABLE, "Exceeds maximum queue size", True, True),
    Code.EXPIRED: Row(ErrorCode.UNAVAILABLE, "Request timeout expired", False, True),
}


def said(error: ServeError, over_rpc: bool, about: Facts) -> Said | None:
    """By the tables; None for an error without a row. `about`: the model and the id of the request, for texts that
    name what the error itself does not know.
    """
    if error.fault is None:
        row, facts = _FIXED.get(error.code), about
    else:
        kind, facts = error.fault.kind, {**about, **error.fault.facts}
        row = (RPC_ROWS.get(kind) if over_rpc else None) or ROWS.get(kind)
    if row is None:
        return None
    text = row.text.format_map(facts) if isinstance(row.text, str) else row.text(facts)
    if "within" in facts:
        text = f"Converting keyword: '{facts['within']}': {text}"
    prefix = f"[request id: {about.get('id') or '<id_unknown>'}] " if row.has_id else ""
    return Said(row.code, prefix + text, row.is_plain)
