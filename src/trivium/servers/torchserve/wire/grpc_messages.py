"""The messages of TorchServe's gRPC services: their fields, and how they are read.

Source: spec sheet `torchserve`, section 7. Every message is judged by its fields before it is read.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from google.protobuf.message import DecodeError

from trivium.codecs.protobuf_fields import judge_fields
from trivium.codecs.protobuf_schema import classes_of
from trivium.codecs.protobuf_services import (
    EMPTY,
    EMPTY_FILE,
    STATUS,
    STATUS_FILE,
    Rpc,
    depending,
    known_files,
    messages_file,
    with_service,
)
from trivium.types.errors import Code, ServeError

INFERENCE = "org.pytorch.serve.grpc.inference"
MANAGEMENT = "org.pytorch.serve.grpc.management"

INFERENCE_MESSAGES = {
    "PredictionsRequest": """
        1 string model_name
        2 string model_version
        3 map<string,bytes> input
        4 oneof=_sequence_id string sequence_id""",
    "ErrorInfo": "1 string reason",
    "Any": """
        1 string type_url
        2 bytes value""",
    "Status": """
        1 int32 code
        2 string message
        3 repeated Any details""",
    "PredictionResponse": """
        1 bytes prediction
        2 oneof=_sequence_id string sequence_id
        3 oneof=_status Status status""",
    "TorchServeHealthResponse": "1 string health",
}
"""Message -> its fields. Status and ErrorInfo are those of google.rpc, Any is google.protobuf's: the same bytes."""

MANAGEMENT_MESSAGES = {
    "ManagementResponse": "1 string msg",
    "DescribeModelRequest": """
        1 string model_name
        2 string model_version
        3 bool customized""",
    "ListModelsRequest": """
        1 int32 limit
        2 int32 next_page_token""",
    "RegisterModelRequest": """
        1 int32 batch_size
        2 string handler
        3 int32 initial_workers
        4 int32 max_batch_delay
        5 string model_name
        6 int32 response_timeout
        7 string runtime
        8 bool synchronous
        9 string url
        10 bool s3_sse_kms
        11 int32 startup_timeout""",
    "ScaleWorkerRequest": """
        1 string model_name
        2 string model_version
        3 int32 max_worker
        4 int32 min_worker
        5 int32 number_gpu
        6 bool synchronous
        7 int32 timeout""",
    "SetDefaultRequest": """
        1 string model_name
        2 string model_version""",
    "UnregisterModelRequest": """
        1 string model_name
        2 string model_version""",
}
"""Message -> its fields."""

_CLASSES = {**classes_of(INFERENCE, INFERENCE_MESSAGES), **classes_of(MANAGEMENT, MANAGEMENT_MESSAGES)}


_GOOGLES = {"Any": "", "ErrorInfo": "", "Status": STATUS}
"""Messages that are of other packages in the original's files."""


def service_files(infers: str, manages: str, managing: Mapping[str, str]) -> Sequence[bytes]:
    """Return the files of the services of these names; `managing`: RPC that manages models -> its request."""
    one = "PredictionsRequest", "PredictionResponse"
    inference = {
        "Ping": Rpc(EMPTY, "TorchServeHealthResponse"),
        "Predictions": Rpc(*one),
        "StreamPredictions": Rpc(*one, answers_many=True),
        "StreamPredictions2": Rpc(*one, asks_many=True, answers_many=True),
    }
    management = {name: Rpc(request, "ManagementResponse") for name, request in managing.items()}
    files = (
        with_service(
            depending(
                messages_file("torchserve/inference.proto", INFERENCE, INFERENCE_MESSAGES, _GOOGLES),
                EMPTY_FILE,
                STATUS_FILE,
            ),
            infers,
            inference,
        ),
        with_service(
            messages_file("torchserve/management.proto", MANAGEMENT, MANAGEMENT_MESSAGES), manages, management
        ),
    )
    return (*known_files(), *(file.SerializeToString() for file in files))


def new(name: str, **fields: object) -> Any:
    """Make a message."""
    return _CLASSES[name](**fields)


def read(name: str, message: bytes, data: Collection[int] = ()) -> Any:
    """Read a message whose fields `data` may be large. INVALID for what is none, TOO_LARGE for too many fields."""
    judge_fields(message, data, f"The {name}")
    found = new(name)
    try:
        found.ParseFromString(message)
    except DecodeError as error:
        raise ServeError(Code.INVALID, f"The message is no {name} ({error}). Send one.") from error
    return found
