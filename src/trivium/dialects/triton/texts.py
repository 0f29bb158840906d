"""Triton's own words for what is wrong: one table of kinds for both wires, and one of what gRPC says otherwise.

Source: spec sheet `triton`, sections 4.2, 4.5, 4.6, 4.9 to 4.12 and 5.3. What has no row keeps the sentence that it
has. Knows no wire; what status a code has is in `error_codes`.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from trivium.codecs import data_reasons
from trivium.dialects.triton import request_reasons
from trivium.dialects.triton.error_codes import ErrorCode
from trivium.dialects.triton.text_forms import (
    ONE_OF,
    contents_type,
    element,
    input_count,
    many_strings,
    no_backend,
    no_object,
    not_cacheable,
    not_loaded,
    parameter,
    rpc_parameter,
    several_fields,
    shape,
)
from trivium.types import reasons
from trivium.types.errors import Code, ServeError

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

ROWS: Mapping[str, Row] = {
    data_reasons.NO_JSON: Row(_INTERNAL, "failed to parse the request JSON buffer: {found}"),
    data_reasons.NO_OBJECT: Row(_INTERNAL, no_object),
    reasons.UNKNOWN_MODEL: Row(ErrorCode.NOT_FOUND, "Request for unknown model: '{model}' is not found"),
    reasons.UNKNOWN_VERSION: Row(
        ErrorCode.NOT_FOUND, "Request for unknown model: '{model}' version {version} is not found"
    ),
    reasons.NOT_SERVING: Row(
        ErrorCode.NOT_FOUND, "Request for unknown model: '{model}' has no available versions"
    ),
    reasons.SEVERAL_PARTS: Row(
        ErrorCode.UNSUPPORTED,
        "HTTP end point doesn't support models with decoupled transaction policy",
        False,
        True,
    ),
    reasons.INPUT_COUNT: Row(_INVALID, input_count, True),
    reasons.UNKNOWN_INPUT: Row(_INVALID, "unexpected inference input '{input}' for model '{model}'"),
    reasons.INPUT_TWICE: Row(_INVALID, "input '{input}' already exists in request", True),
    request_reasons.OUTPUT_TWICE: Row(_INVALID, "output '{output}' already exists in request", True),
    reasons.UNKNOWN_OUTPUT: Row(_INVALID, "unexpected inference output '{output}' for model '{model}'"),
    reasons.DATATYPE: Row(
        _INVALID,
        "inference input '{input}' data-type is '{found}', but model '{model}' expects '{expected}'",
        True,
    ),
    reasons.SHAPE: Row(_INVALID, shape, True),
    reasons.NO_SHAPE: Row(
        _INVALID, "input '{input}' has no shape but model requires batch dimension for '{model}'", True
    ),
    reasons.TOO_MANY_ROWS: Row(
        _INVALID, "inference request batch-size must be <= {most} for '{model}'", True
    ),
    reasons.ROWS_APART: Row(
        _INVALID, "input '{input}' batch size does not match other inputs for '{model}'", True
    ),
    reasons.BYTE_SIZE: Row(
        _INVALID,
        "input byte size mismatch for input '{input}' for model '{model}'. Expected {expected}, got {found}",
        True,
    ),
    reasons.FEW_STRINGS: Row(
        _INVALID,
        "expected {expected} string elements for inference input '{input}' for model '{model}', got {found}",
        True,
    ),
    data_reasons.MANY_STRINGS: Row(_INVALID, many_strings, True),
    data_reasons.CUT_LENGTH: Row(
        _INVALID,
        "incomplete string length indicator for inference input '{input}' for model '{model}', expecting 4 bytes but "
        "only {found} bytes available. Please make sure the string length indicator is in one buffer.",
        True,
    ),
    data_reasons.CUT_STRING: Row(
        _INVALID,
        "incomplete string data for inference input '{input}', expecting string of length {expected} but only {found} "
        "bytes available",
        False,
        True,
    ),
    data_reasons.ELEMENT: Row(_INTERNAL, element),
    data_reasons.NO_LIST: Row(_INTERNAL, "Unable to parse 'data': attempt to access JSON non-array as array"),
    data_reasons.ELEMENT_COUNT: Row(
        _INTERNAL, "Unable to parse 'data': Shape does not match true shape of 'data' field"
    ),
    data_reasons.NOT_IN_JSON: Row(
        _INVALID,
        "receiving {datatype} data via JSON is not supported. Please use the binary data format for input {input}",
    ),
    data_reasons.UNSENDABLE: Row(
        _INVALID,
        "sending {datatype} data via JSON is not supported. Please use the binary data format for output",
        False,
        True,
    ),
    request_reasons.SHORT_BLOB: Row(
        _INVALID,
        "unexpected size for input '{input}', expecting {lacking} additional bytes for model '{model}'",
    ),
    request_reasons.LEFT_OVER: Row(_INVALID, "unexpected additional input data for model '{model}'"),
    request_reasons.HEADER_LENGTH: Row(
        _INVALID, "inference header size should be in range (0, {size}), got: {found}", False, True
    ),
    request_reasons.NO_DATA: Row(_INVALID, f"{ONE_OF}no field is set"),
    request_reasons.SEVERAL_DATA: Row(_INVALID, several_fields),
    request_reasons.UNKNOWN_DATATYPE: Row(_INVALID, "invalid datatype for input {input}"),
    data_reasons.RAW_INPUTS: Row(
        _INVALID,
        "Raw request must only have 1 input (found 1) to be deduced but got {count} inputs in '{model}' model "
        "configuration",
        True,
    ),
    data_reasons.RAW_SIZE: Row(
        _INVALID,
        "input byte size mismatch for input 'raw_input' for model '{model}'. Expected {expected}, got {found}",
        True,
    ),
    data_reasons.RAW_SHAPE: Row(
        _INVALID,
        "The shape of the raw input '{input}' can not be deduced because there are more than one variable-sized "
        "dimension",
        True,
    ),
    data_reasons.RAW_STRINGS: Row(
        _INVALID, "For BYTE datatype raw input '{input}', the model must have input shape [1]", True
    ),
    request_reasons.NO_CODING: Row(ErrorCode.UNSUPPORTED, "Unsupported compression type", False, True),
    reasons.BODY_SIZE: Row(
        _INVALID,
        "the request's body exceeds the maximum input size of {most} bytes. Use --http-max-input-size to increase the "
        "limit.",
    ),
    request_reasons.RESERVED: Row(
        _INVALID,
        "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
    ),
    request_reasons.PARAMETER: Row(_INTERNAL, parameter),
    data_reasons.NO_SCALAR: Row(
        _INVALID, "parameter '{key}' has invalid type. It should be either 'int', 'bool', or 'string'."
    ),
    data_reasons.UNFIT: Row(
        _INVALID, "The schema can not convert input '{input}' to tensor with proper shape"
    ),
    reasons.UNKNOWN_REGION: Row(ErrorCode.NOT_FOUND, "Unable to find shared memory region: '{region}'"),
    reasons.REGION_TWICE: Row(ErrorCode.ALREADY_EXISTS, "shared memory region '{region}' already in manager"),
    reasons.REGION_OFFSET: Row(_INVALID, "Invalid offset for shared memory region: '{region}'"),
    reasons.REGION_SIZE: Row(_INVALID, "Invalid offset + byte size for shared memory region: '{region}'"),
    request_reasons.REGION_OUTPUT: Row(
        _INTERNAL,
        "shared memory size specified with the request for output '{output}' ({found} bytes) should be at least "
        "{expected} bytes to hold the results",
        False,
        True,
    ),
    reasons.UNOPENED: Row(_INTERNAL, "Unable to open shared memory region: '{key}'"),
    reasons.BEYOND_MEMORY: Row(_INVALID, "failed to register shared memory region '{region}': invalid args"),
    request_reasons.NO_MEMBER: Row(_INVALID, "Shared memory register request has no '{key}' field"),
    reasons.NO_REGIONS: Row(
        ErrorCode.UNSUPPORTED,
        "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
    ),
    request_reasons.NO_DEVICE: Row(
        _INVALID, "failed to register CUDA shared memory region: '{region}', GPUs not supported"
    ),
    reasons.NOT_BY_CLIENTS: Row(
        ErrorCode.UNAVAILABLE, "explicit model load / unload is not allowed if polling is enabled"
    ),
    request_reasons.NO_HANDLE: Row(
        _INVALID, "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t"
    ),
    request_reasons.UNKNOWN_DEVICE_REGION: Row(
        ErrorCode.NOT_FOUND, "Unable to find cuda shared memory region: '{region}'"
    ),
    request_reasons.NAMED_REPOSITORY: Row(
        ErrorCode.UNSUPPORTED, "'repository_name' specification is not supported"
    ),
    reasons.NOT_LOADED: Row(_INVALID, not_loaded),
    reasons.NO_ENGINE: Row(_INVALID, no_backend),
    reasons.NOT_CACHEABLE: Row(_INVALID, not_cacheable),
    request_reasons.NO_VERSION: Row(
        _INVALID,
        "load failed for model '{model}': at least one version must be available under the version policy of model "
        "'{model}'\n",
    ),
    request_reasons.LOAD_PARAMETER: Row(_INTERNAL, "unexpected error on creating Triton parameter"),
    request_reasons.LOAD_TYPE: Row(_INTERNAL, "attempt to access JSON non-string as string"),
    request_reasons.UNREADABLE: Row(
        _INTERNAL, "failed to load '{model}', failed to poll from model repository"
    ),
    request_reasons.SETTING: Row(_INTERNAL, "attempt to access JSON non-{expected} as {expected}"),
    request_reasons.LOG_FILE: Row(
        ErrorCode.UNSUPPORTED, "log file location can not be updated through network protocol"
    ),
    request_reasons.LOG_FORMAT: Row(ErrorCode.UNAVAILABLE, "invalid argument for --log_format, got: {value}"),
    request_reasons.TRACE_FILE: Row(
        ErrorCode.UNSUPPORTED, "trace file location can not be updated through network protocol"
    ),
    reasons.TRACE_UNFIT: Row(_INVALID, "Attempting to set invalid trace setting :{why}"),
    request_reasons.TRACE_LEVELS: Row(_INVALID, "Expect only one trace level 'OFF' is specified"),
    request_reasons.TRACE_NUMBER: Row(_INVALID, "Unable to parse '{key}', got: {value}"),
    request_reasons.TRACE_RANGE: Row(
        _INVALID, "Unable to parse '{key}', value is out of range [ {least}, {most} ], got: {value}"
    ),
    request_reasons.TRACE_COUNT: Row(_INVALID, "Unable to parse '{key}'. Expecting value >= -1, got:{value}"),
    reasons.SEQUENCE: Row(_INVALID, "{told}"),
    request_reasons.SEVERAL_ANSWERS: Row(
        _INTERNAL,
        "generate expects model to produce exactly 1 response, use generate stream for model that generates various "
        "number of responses",
    ),
}

RPC_ROWS: Mapping[str, Row] = {
    reasons.SEVERAL_PARTS: Row(
        ErrorCode.UNSUPPORTED, "ModelInfer RPC doesn't support models with decoupled transaction policy"
    ),
    request_reasons.NO_DATA: Row(
        _INVALID, "unable to find data for input tensor '{input}' for model '{model}' in request."
    ),
    request_reasons.CONTENTS_AND_RAW: Row(
        _INVALID,
        "contents field must not be specified when using raw_input_contents for '{input}' for model '{model}'",
    ),
    request_reasons.WRONG_CONTENTS: Row(_INVALID, contents_type),
    request_reasons.PARAMETER: Row(_INVALID, rpc_parameter),
    request_reasons.RESERVED: Row(
        _INVALID,
        "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with "
        "'triton_' are allowed: triton_enable_empty_final_response",
    ),
    request_reasons.RESTRICTED_API: Row(
        ErrorCode.UNAVAILABLE, "This protocol is restricted, expecting header '{header}'"
    ),
    request_reasons.LOAD_PARAMETER: Row(_INVALID, "unrecognized load parameter '{key}'."),
    request_reasons.SETTING: Row(_INVALID, "expect {expected} for '{key}'"),
    request_reasons.TRACE_COUNT: Row(
        _INVALID, "Unable to parse '{key}'. Expecting value >= -1, got: {value}"
    ),
    request_reasons.LOG_FORMAT: Row(_INVALID, "invalid argument for log_format, got: {value}"),
    request_reasons.SEVERAL_VALUES: Row(_INVALID, "expect only 1 value for '{key}'"),
    request_reasons.NO_DEVICE: Row(_INVALID, "failed to register shared memory region: invalid args"),
    request_reasons.NO_REGION_SIZE: Row(
        _INVALID,
        "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor '{tensor}'",
    ),
    request_reasons.LOAD_TYPE: Row(
        _INVALID, "invalid value type for load parameter '{key}', expected {expected}."
    ),
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
    if error.info is None:
        row, facts = _FIXED.get(error.code), about
    else:
        reason, facts = error.info.reason, {**about, **error.info.metadata}
        row = (RPC_ROWS.get(reason) if over_rpc else None) or ROWS.get(reason)
    if row is None:
        return None
    text = row.text.format_map(facts) if isinstance(row.text, str) else row.text(facts)
    if "within" in facts:
        text = f"Converting keyword: '{facts['within']}': {text}"
    prefix = f"[request id: {about.get('id') or '<id_unknown>'}] " if row.has_id else ""
    return Said(row.code, prefix + text, row.is_plain)
