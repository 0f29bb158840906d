"""Triton's own words for what is wrong: one table of kinds for both wires, and one of what gRPC says otherwise.

Source: spec sheet `triton`, sections 4.2, 4.5, 4.6, 4.9 to 4.12 and 5.3. What has no row keeps the sentence that it
has. Knows no wire; what status a code has is in `error_codes`.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from trivium.codecs import data_reasons
from trivium.servers.triton.words.error_codes import ErrorCode
from trivium.servers.triton.words.text_forms import (
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
    unstarted,
)
from trivium.types import reasons
from trivium.types.errors import Code, ServeError
from trivium.wires.v2 import request_reasons

Facts = Mapping[str, object]
Form = Callable[[Facts], str]


class ErrorText(NamedTuple):
    """A code and a text with facts in braces, or what makes it. `has_id`: the request's id stands in front.
    `is_plain`: over HTTP the answer has the content type text/plain.
    """

    code: ErrorCode
    text: str | Form
    has_id: bool = False
    is_plain: bool = False


class Said(NamedTuple):
    """The text that a client reads; `is_plain` as in `ErrorText`."""

    code: ErrorCode
    text: str
    is_plain: bool = False


_INTERNAL, _INVALID = ErrorCode.INTERNAL, ErrorCode.INVALID_ARG

ROWS: Mapping[str, ErrorText] = {
    data_reasons.NO_JSON: ErrorText(_INTERNAL, "failed to parse the request JSON buffer: {found}"),
    data_reasons.NO_OBJECT: ErrorText(_INTERNAL, no_object),
    reasons.UNKNOWN_MODEL: ErrorText(
        ErrorCode.NOT_FOUND, "Request for unknown model: '{model}' is not found"
    ),
    reasons.UNKNOWN_VERSION: ErrorText(
        ErrorCode.NOT_FOUND, "Request for unknown model: '{model}' version {version} is not found"
    ),
    reasons.NOT_SERVING: ErrorText(
        ErrorCode.NOT_FOUND, "Request for unknown model: '{model}' has no available versions"
    ),
    reasons.SEVERAL_PARTS: ErrorText(
        ErrorCode.UNSUPPORTED,
        "HTTP end point doesn't support models with decoupled transaction policy",
        False,
        True,
    ),
    reasons.INPUT_COUNT: ErrorText(_INVALID, input_count, True),
    reasons.UNKNOWN_INPUT: ErrorText(_INVALID, "unexpected inference input '{input}' for model '{model}'"),
    reasons.INPUT_TWICE: ErrorText(_INVALID, "input '{input}' already exists in request", True),
    request_reasons.OUTPUT_TWICE: ErrorText(_INVALID, "output '{output}' already exists in request", True),
    reasons.UNKNOWN_OUTPUT: ErrorText(_INVALID, "unexpected inference output '{output}' for model '{model}'"),
    reasons.DATATYPE: ErrorText(
        _INVALID,
        "inference input '{input}' data-type is '{found}', but model '{model}' expects '{expected}'",
        True,
    ),
    reasons.SHAPE: ErrorText(_INVALID, shape, True),
    reasons.NO_SHAPE: ErrorText(
        _INVALID, "input '{input}' has no shape but model requires batch dimension for '{model}'", True
    ),
    reasons.TOO_MANY_ROWS: ErrorText(
        _INVALID, "inference request batch-size must be <= {most} for '{model}'", True
    ),
    reasons.ROWS_APART: ErrorText(
        _INVALID, "input '{input}' batch size does not match other inputs for '{model}'", True
    ),
    reasons.BYTE_SIZE: ErrorText(
        _INVALID,
        "input byte size mismatch for input '{input}' for model '{model}'. Expected {expected}, got {found}",
        True,
    ),
    reasons.FEW_STRINGS: ErrorText(
        _INVALID,
        "expected {expected} string elements for inference input '{input}' for model '{model}', got {found}",
        True,
    ),
    data_reasons.MANY_STRINGS: ErrorText(_INVALID, many_strings, True),
    data_reasons.CUT_LENGTH: ErrorText(
        _INVALID,
        "incomplete string length indicator for inference input '{input}' for model '{model}', expecting 4 bytes but "
        "only {found} bytes available. Please make sure the string length indicator is in one buffer.",
        True,
    ),
    data_reasons.CUT_STRING: ErrorText(
        _INVALID,
        "incomplete string data for inference input '{input}', expecting string of length {expected} but only {found} "
        "bytes available",
        False,
        True,
    ),
    data_reasons.ELEMENT: ErrorText(_INTERNAL, element),
    data_reasons.NO_LIST: ErrorText(
        _INTERNAL, "Unable to parse 'data': attempt to access JSON non-array as array"
    ),
    data_reasons.ELEMENT_COUNT: ErrorText(
        _INTERNAL, "Unable to parse 'data': Shape does not match true shape of 'data' field"
    ),
    data_reasons.NOT_IN_JSON: ErrorText(
        _INVALID,
        "receiving {datatype} data via JSON is not supported. Please use the binary data format for input {input}",
    ),
    data_reasons.UNSENDABLE: ErrorText(
        _INVALID,
        "sending {datatype} data via JSON is not supported. Please use the binary data format for output",
        False,
        True,
    ),
    request_reasons.SHORT_BLOB: ErrorText(
        _INVALID,
        "unexpected size for input '{input}', expecting {lacking} additional bytes for model '{model}'",
    ),
    request_reasons.LEFT_OVER: ErrorText(_INVALID, "unexpected additional input data for model '{model}'"),
    request_reasons.HEADER_LENGTH: ErrorText(
        _INVALID, "inference header size should be in range (0, {size}), got: {found}", False, True
    ),
    request_reasons.NO_DATA: ErrorText(_INVALID, f"{ONE_OF}no field is set"),
    request_reasons.SEVERAL_DATA: ErrorText(_INVALID, several_fields),
    request_reasons.UNKNOWN_DATATYPE: ErrorText(_INVALID, "invalid datatype for input {input}"),
    data_reasons.RAW_INPUTS: ErrorText(
        _INVALID,
        "Raw request must only have 1 input (found 1) to be deduced but got {count} inputs in '{model}' model "
        "configuration",
        True,
    ),
    data_reasons.RAW_SIZE: ErrorText(
        _INVALID,
        "input byte size mismatch for input 'raw_input' for model '{model}'. Expected {expected}, got {found}",
        True,
    ),
    data_reasons.RAW_SHAPE: ErrorText(
        _INVALID,
        "The shape of the raw input '{input}' can not be deduced because there are more than one variable-sized "
        "dimension",
        True,
    ),
    data_reasons.RAW_STRINGS: ErrorText(
        _INVALID, "For BYTE datatype raw input '{input}', the model must have input shape [1]", True
    ),
    request_reasons.NO_CODING: ErrorText(ErrorCode.UNSUPPORTED, "Unsupported compression type", False, True),
    reasons.BODY_SIZE: ErrorText(
        _INVALID,
        "the request's body exceeds the maximum input size of {most} bytes. Use --http-max-input-size to increase the "
        "limit.",
    ),
    request_reasons.RESERVED: ErrorText(
        _INVALID,
        "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
    ),
    request_reasons.PARAMETER: ErrorText(_INTERNAL, parameter),
    data_reasons.NO_SCALAR: ErrorText(
        _INVALID, "parameter '{key}' has invalid type. It should be either 'int', 'bool', or 'string'."
    ),
    data_reasons.UNFIT: ErrorText(
        _INVALID, "The schema can not convert input '{input}' to tensor with proper shape"
    ),
    reasons.UNKNOWN_REGION: ErrorText(ErrorCode.NOT_FOUND, "Unable to find shared memory region: '{region}'"),
    reasons.REGION_TWICE: ErrorText(
        ErrorCode.ALREADY_EXISTS, "shared memory region '{region}' already in manager"
    ),
    reasons.REGION_OFFSET: ErrorText(_INVALID, "Invalid offset for shared memory region: '{region}'"),
    reasons.REGION_SIZE: ErrorText(
        _INVALID, "Invalid offset + byte size for shared memory region: '{region}'"
    ),
    request_reasons.REGION_OUTPUT: ErrorText(
        _INTERNAL,
        "shared memory size specified with the request for output '{output}' ({found} bytes) should be at least "
        "{expected} bytes to hold the results",
        False,
        True,
    ),
    reasons.UNOPENED: ErrorText(_INTERNAL, "Unable to open shared memory region: '{key}'"),
    reasons.BEYOND_MEMORY: ErrorText(
        _INVALID, "failed to register shared memory region '{region}': invalid args"
    ),
    request_reasons.NO_MEMBER: ErrorText(_INVALID, "Shared memory register request has no '{key}' field"),
    reasons.NO_REGIONS: ErrorText(
        ErrorCode.UNSUPPORTED,
        "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
    ),
    request_reasons.NO_DEVICE: ErrorText(
        _INVALID, "failed to register CUDA shared memory region: '{region}', GPUs not supported"
    ),
    reasons.NOT_BY_CLIENTS: ErrorText(
        ErrorCode.UNAVAILABLE, "explicit model load / unload is not allowed if polling is enabled"
    ),
    request_reasons.NO_HANDLE: ErrorText(
        _INVALID, "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t"
    ),
    request_reasons.UNKNOWN_DEVICE_REGION: ErrorText(
        ErrorCode.NOT_FOUND, "Unable to find cuda shared memory region: '{region}'"
    ),
    request_reasons.NAMED_REPOSITORY: ErrorText(
        ErrorCode.UNSUPPORTED, "'repository_name' specification is not supported"
    ),
    reasons.NOT_LOADED: ErrorText(_INVALID, not_loaded),
    reasons.NO_ENGINE: ErrorText(_INVALID, no_backend),
    reasons.NOT_CACHEABLE: ErrorText(_INVALID, not_cacheable),
    request_reasons.NO_VERSION: ErrorText(
        _INVALID,
        "load failed for model '{model}': at least one version must be available under the version policy of model "
        "'{model}'\n",
    ),
    request_reasons.LOAD_PARAMETER: ErrorText(_INTERNAL, "unexpected error on creating Triton parameter"),
    request_reasons.LOAD_TYPE: ErrorText(_INTERNAL, "attempt to access JSON non-string as string"),
    request_reasons.UNREADABLE: ErrorText(
        _INTERNAL, "failed to load '{model}', failed to poll from model repository"
    ),
    request_reasons.SETTING: ErrorText(_INTERNAL, "attempt to access JSON non-{expected} as {expected}"),
    request_reasons.LOG_FILE: ErrorText(
        ErrorCode.UNSUPPORTED, "log file location can not be updated through network protocol"
    ),
    request_reasons.LOG_FORMAT: ErrorText(
        ErrorCode.UNAVAILABLE, "invalid argument for --log_format, got: {value}"
    ),
    request_reasons.TRACE_FILE: ErrorText(
        ErrorCode.UNSUPPORTED, "trace file location can not be updated through network protocol"
    ),
    reasons.TRACE_UNFIT: ErrorText(_INVALID, "Attempting to set invalid trace setting :{why}"),
    request_reasons.TRACE_LEVELS: ErrorText(_INVALID, "Expect only one trace level 'OFF' is specified"),
    request_reasons.TRACE_NUMBER: ErrorText(_INVALID, "Unable to parse '{key}', got: {value}"),
    request_reasons.TRACE_RANGE: ErrorText(
        _INVALID, "Unable to parse '{key}', value is out of range [ {least}, {most} ], got: {value}"
    ),
    request_reasons.TRACE_COUNT: ErrorText(
        _INVALID, "Unable to parse '{key}'. Expecting value >= -1, got:{value}"
    ),
    reasons.NO_SEQUENCE: ErrorText(
        _INVALID, "inference request to model '{model}' must specify a non-zero or non-empty correlation ID"
    ),
    reasons.SEQUENCE_ROWS: ErrorText(
        _INVALID,
        "inference request to model '{model}' must specify batch-size 1 due to requirements of sequence batcher",
    ),
    reasons.UNSTARTED: ErrorText(_INVALID, unstarted),
    request_reasons.SEVERAL_ANSWERS: ErrorText(
        _INTERNAL,
        "generate expects model to produce exactly 1 response, use generate stream for model that generates various "
        "number of responses",
    ),
}

RPC_ROWS: Mapping[str, ErrorText] = {
    reasons.SEVERAL_PARTS: ErrorText(
        ErrorCode.UNSUPPORTED, "ModelInfer RPC doesn't support models with decoupled transaction policy"
    ),
    request_reasons.NO_DATA: ErrorText(
        _INVALID, "unable to find data for input tensor '{input}' for model '{model}' in request."
    ),
    request_reasons.CONTENTS_AND_RAW: ErrorText(
        _INVALID,
        "contents field must not be specified when using raw_input_contents for '{input}' for model '{model}'",
    ),
    request_reasons.WRONG_CONTENTS: ErrorText(_INVALID, contents_type),
    request_reasons.PARAMETER: ErrorText(_INVALID, rpc_parameter),
    request_reasons.RESERVED: ErrorText(
        _INVALID,
        "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with "
        "'triton_' are allowed: triton_enable_empty_final_response",
    ),
    request_reasons.RESTRICTED_API: ErrorText(
        ErrorCode.UNAVAILABLE, "This protocol is restricted, expecting header '{header}'"
    ),
    request_reasons.LOAD_PARAMETER: ErrorText(_INVALID, "unrecognized load parameter '{key}'."),
    request_reasons.SETTING: ErrorText(_INVALID, "expect {expected} for '{key}'"),
    request_reasons.TRACE_COUNT: ErrorText(
        _INVALID, "Unable to parse '{key}'. Expecting value >= -1, got: {value}"
    ),
    request_reasons.LOG_FORMAT: ErrorText(_INVALID, "invalid argument for log_format, got: {value}"),
    request_reasons.SEVERAL_VALUES: ErrorText(_INVALID, "expect only 1 value for '{key}'"),
    request_reasons.NO_DEVICE: ErrorText(_INVALID, "failed to register shared memory region: invalid args"),
    request_reasons.NO_REGION_SIZE: ErrorText(
        _INVALID,
        "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor '{tensor}'",
    ),
    request_reasons.LOAD_TYPE: ErrorText(
        _INVALID, "invalid value type for load parameter '{key}', expected {expected}."
    ),
}
"""What is said otherwise over gRPC."""

_FIXED: Mapping[Code, ErrorText] = {
    Code.QUEUE_FULL: ErrorText(ErrorCode.UNAVAILABLE, "Exceeds maximum queue size", True, True),
    Code.EXPIRED: ErrorText(ErrorCode.UNAVAILABLE, "Request timeout expired", False, True),
}


def error_text(error: ServeError, over_rpc: bool, about: Facts) -> Said | None:
    """Return the text by the tables; None for an error without a row. `about`: the model and the id of the request,
    for texts that name what the error itself does not know.
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
