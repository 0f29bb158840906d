"""Triton's own words for what is wrong: rows for both wires, and those of what gRPC says otherwise.

Source: spec sheet `triton`, sections 4.2, 4.5, 4.6, 4.9 to 4.12 and 5.3. What has no row keeps the sentence that it
has. Statuses are those of gRPC, as the original's own codes are; `error_codes` has HTTP's.
"""

from trivium.codecs import data_reasons
from trivium.codecs.error_table import ErrorRow, ErrorTable, Facts, Rows, Wording, rows_of
from trivium.codecs.grpc_status import (
    ALREADY_EXISTS,
    INTERNAL,
    INVALID_ARGUMENT,
    NOT_FOUND,
    UNAVAILABLE,
    UNIMPLEMENTED,
)
from trivium.servers.triton.words.text_forms import (
    ONE_OF,
    contents_type,
    element,
    input_count,
    many_strings,
    no_backend,
    no_object,
    no_scalar,
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

PLAIN = b"Content-Type: text/plain\r\n"
UNEXPLAINED = "unexplained"
"""The verb of an error without a reason."""

ROWS: Rows = {
    **rows_of(
        INTERNAL,
        {
            data_reasons.NO_JSON: "failed to parse the request JSON buffer: {found}",
            data_reasons.NO_OBJECT: no_object,
            data_reasons.ELEMENT: element,
            data_reasons.NO_LIST: "Unable to parse 'data': attempt to access JSON non-array as array",
            data_reasons.ELEMENT_COUNT: "Unable to parse 'data': Shape does not match true shape of 'data' field",
            request_reasons.PARAMETER: parameter,
            reasons.UNOPENED: "Unable to open shared memory region: '{key}'",
            request_reasons.LOAD_PARAMETER: "unexpected error on creating Triton parameter",
            request_reasons.LOAD_TYPE: "attempt to access JSON non-string as string",
            request_reasons.UNREADABLE: "failed to load '{model}', failed to poll from model repository",
            request_reasons.SETTING: "attempt to access JSON non-{expected} as {expected}",
            request_reasons.SEVERAL_ANSWERS: (
                "generate expects model to produce exactly 1 response, use generate stream for model that generates "
                "various number of responses"
            ),
        },
    ),
    **rows_of(
        NOT_FOUND,
        {
            reasons.UNKNOWN_MODEL: "Request for unknown model: '{model}' is not found",
            reasons.UNKNOWN_VERSION: "Request for unknown model: '{model}' version {version} is not found",
            reasons.NOT_SERVING: "Request for unknown model: '{model}' has no available versions",
            reasons.UNKNOWN_REGION: "Unable to find shared memory region: '{region}'",
            request_reasons.UNKNOWN_DEVICE_REGION: "Unable to find cuda shared memory region: '{region}'",
        },
    ),
    **rows_of(
        UNIMPLEMENTED,
        {
            reasons.SEVERAL_PARTS: "HTTP end point doesn't support models with decoupled transaction policy",
            request_reasons.NO_CODING: "Unsupported compression type",
        },
        PLAIN,
    ),
    **rows_of(
        INVALID_ARGUMENT,
        {
            reasons.INPUT_COUNT: input_count,
            reasons.UNKNOWN_INPUT: "unexpected inference input '{input}' for model '{model}'",
            reasons.INPUT_TWICE: "{asked}input '{input}' already exists in request",
            request_reasons.OUTPUT_TWICE: "{asked}output '{output}' already exists in request",
            reasons.UNKNOWN_OUTPUT: "unexpected inference output '{output}' for model '{model}'",
            reasons.DATATYPE: (
                "{asked}inference input '{input}' data-type is '{found}', but model '{model}' expects "
                "'{expected}'"
            ),
            reasons.SHAPE: shape,
            reasons.NO_SHAPE: "{asked}input '{input}' has no shape but model requires batch dimension for '{model}'",
            reasons.TOO_MANY_ROWS: "{asked}inference request batch-size must be <= {most} for '{model}'",
            reasons.ROWS_APART: "{asked}input '{input}' batch size does not match other inputs for '{model}'",
            reasons.BYTE_SIZE: (
                "{asked}input byte size mismatch for input '{input}' for model '{model}'. Expected {expected}, got "
                "{found}"
            ),
            reasons.FEW_STRINGS: (
                "{asked}expected {expected} string elements for inference input '{input}' for model '{model}', got "
                "{found}"
            ),
            data_reasons.MANY_STRINGS: many_strings,
            data_reasons.CUT_LENGTH: (
                "{asked}incomplete string length indicator for inference input '{input}' for model '{model}', "
                "expecting 4 bytes but only {found} bytes available. Please make sure the string length indicator is "
                "in one buffer."
            ),
            data_reasons.NOT_IN_JSON: (
                "receiving {datatype} data via JSON is not supported. Please use the binary data format for input "
                "{input}"
            ),
            request_reasons.SHORT_BLOB: (
                "unexpected size for input '{input}', expecting {lacking} additional bytes for model "
                "'{model}'"
            ),
            request_reasons.LEFT_OVER: "unexpected additional input data for model '{model}'",
            request_reasons.NO_DATA: f"{ONE_OF}no field is set",
            request_reasons.SEVERAL_DATA: several_fields,
            request_reasons.UNKNOWN_DATATYPE: "invalid datatype for input {input}",
            data_reasons.RAW_INPUTS: (
                "{asked}Raw request must only have 1 input (found 1) to be deduced but got {count} inputs in "
                "'{model}' model configuration"
            ),
            data_reasons.RAW_SIZE: (
                "{asked}input byte size mismatch for input 'raw_input' for model '{model}'. Expected {expected}, got "
                "{found}"
            ),
            data_reasons.RAW_SHAPE: (
                "{asked}The shape of the raw input '{input}' can not be deduced because there are more than one "
                "variable-sized dimension"
            ),
            data_reasons.RAW_STRINGS: (
                "{asked}For BYTE datatype raw input '{input}', the model must have input shape [1]"
            ),
            reasons.BODY_SIZE: (
                "the request's body exceeds the maximum input size of {most} bytes. Use --http-max-input-size to "
                "increase the limit."
            ),
            request_reasons.RESERVED: (
                "parameter keys starting with 'triton_' are reserved for Triton usage and should not be "
                "specified."
            ),
            data_reasons.NO_SCALAR: no_scalar,
            data_reasons.UNFIT: "The schema can not convert input '{input}' to tensor with proper shape",
            reasons.REGION_OFFSET: "Invalid offset for shared memory region: '{region}'",
            reasons.REGION_SIZE: "Invalid offset + byte size for shared memory region: '{region}'",
            reasons.BEYOND_MEMORY: "failed to register shared memory region '{region}': invalid args",
            request_reasons.NO_MEMBER: "Shared memory register request has no '{key}' field",
            request_reasons.NO_DEVICE: "failed to register CUDA shared memory region: '{region}', GPUs not supported",
            request_reasons.NO_HANDLE: "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t",
            reasons.NOT_LOADED: not_loaded,
            reasons.NO_ENGINE: no_backend,
            reasons.NOT_CACHEABLE: not_cacheable,
            request_reasons.NO_VERSION: (
                "load failed for model '{model}': at least one version must be available under the version policy of "
                "model '{model}'\n"
            ),
            reasons.TRACE_UNFIT: "Attempting to set invalid trace setting :{why}",
            request_reasons.TRACE_LEVELS: "Expect only one trace level 'OFF' is specified",
            request_reasons.TRACE_NUMBER: "Unable to parse '{key}', got: {value}",
            request_reasons.TRACE_RANGE: (
                "Unable to parse '{key}', value is out of range [ {least}, {most} ], got: {value}"
            ),
            request_reasons.TRACE_COUNT: "Unable to parse '{key}'. Expecting value >= -1, got:{value}",
            reasons.NO_SEQUENCE: (
                "inference request to model '{model}' must specify a non-zero or non-empty correlation ID"
            ),
            reasons.SEQUENCE_ROWS: (
                "inference request to model '{model}' must specify batch-size 1 due to requirements of sequence "
                "batcher"
            ),
            reasons.UNSTARTED: unstarted,
        },
    ),
    **rows_of(
        INVALID_ARGUMENT,
        {
            data_reasons.CUT_STRING: (
                "incomplete string data for inference input '{input}', expecting string of length {expected} but "
                "only {found} bytes available"
            ),
            data_reasons.UNSENDABLE: (
                "sending {datatype} data via JSON is not supported. Please use the binary data format for "
                "output"
            ),
            request_reasons.HEADER_LENGTH: "inference header size should be in range (0, {size}), got: {found}",
        },
        PLAIN,
    ),
    **rows_of(
        ALREADY_EXISTS,
        {
            reasons.REGION_TWICE: "shared memory region '{region}' already in manager",
        },
    ),
    **rows_of(
        INTERNAL,
        {
            request_reasons.REGION_OUTPUT: (
                "shared memory size specified with the request for output '{output}' ({found} bytes) should be at "
                "least {expected} bytes to hold the results"
            ),
        },
        PLAIN,
    ),
    **rows_of(
        UNIMPLEMENTED,
        {
            reasons.NO_REGIONS: (
                "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
            ),
            request_reasons.NAMED_REPOSITORY: "'repository_name' specification is not supported",
            request_reasons.LOG_FILE: "log file location can not be updated through network protocol",
            request_reasons.TRACE_FILE: "trace file location can not be updated through network protocol",
        },
    ),
    **rows_of(
        UNAVAILABLE,
        {
            reasons.NOT_BY_CLIENTS: "explicit model load / unload is not allowed if polling is enabled",
            request_reasons.LOG_FORMAT: "invalid argument for --log_format, got: {value}",
        },
    ),
    (Code.QUEUE_FULL, UNEXPLAINED): ErrorRow(
        UNAVAILABLE, text="{asked}Exceeds maximum queue size", content_type=PLAIN
    ),
    (Code.EXPIRED, UNEXPLAINED): ErrorRow(UNAVAILABLE, text="Request timeout expired", content_type=PLAIN),
}

_OVER_RPC: Rows = {
    **rows_of(
        UNIMPLEMENTED,
        {
            reasons.SEVERAL_PARTS: "ModelInfer RPC doesn't support models with decoupled transaction policy",
        },
    ),
    **rows_of(
        INVALID_ARGUMENT,
        {
            request_reasons.NO_DATA: "unable to find data for input tensor '{input}' for model '{model}' in request.",
            request_reasons.CONTENTS_AND_RAW: (
                "contents field must not be specified when using raw_input_contents for '{input}' for model "
                "'{model}'"
            ),
            request_reasons.WRONG_CONTENTS: contents_type,
            request_reasons.PARAMETER: rpc_parameter,
            request_reasons.RESERVED: (
                "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys "
                "starting with 'triton_' are allowed: triton_enable_empty_final_response"
            ),
            request_reasons.LOAD_PARAMETER: "unrecognized load parameter '{key}'.",
            request_reasons.SETTING: "expect {expected} for '{key}'",
            request_reasons.TRACE_COUNT: "Unable to parse '{key}'. Expecting value >= -1, got: {value}",
            request_reasons.LOG_FORMAT: "invalid argument for log_format, got: {value}",
            request_reasons.SEVERAL_VALUES: "expect only 1 value for '{key}'",
            request_reasons.NO_DEVICE: "failed to register shared memory region: invalid args",
            request_reasons.NO_REGION_SIZE: (
                "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor "
                "'{tensor}'"
            ),
            request_reasons.LOAD_TYPE: "invalid value type for load parameter '{key}', expected {expected}.",
        },
    ),
    **rows_of(
        UNAVAILABLE,
        {
            request_reasons.RESTRICTED_API: "This protocol is restricted, expecting header '{header}'",
        },
    ),
}
RPC_ROWS: Rows = {**ROWS, **_OVER_RPC}
"""With what is said otherwise over gRPC."""


WORDS = ErrorTable(ROWS)
RPC_WORDS = ErrorTable(RPC_ROWS)


def error_text(error: ServeError, about: Facts, table: ErrorTable = WORDS, verb: str = "") -> Wording:
    """Return what is said of an error; without a status for one without a row. `about`: the model and the id of the
    request, for texts that name what the error itself does not know.
    """
    asked = f"[request id: {about.get('id') or '<id_unknown>'}] "
    return table.wording(error, verb if error.reason else UNEXPLAINED, {**about, "asked": asked})
