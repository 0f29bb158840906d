"""What a handler reads of a call that went wrong. The door's refusals are compared with the original's end to end."""

import numpy as np
import pytest

from trivium.core.queueing.call_graph import CallGraph
from trivium.servers.triton.words.call_texts import translate_error
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.operations import CallRef, Infer
from trivium.types.payload import Tensors

CALL = Infer(model="m", payload=Tensors.of({"x": np.zeros((1, 1), "<f4")}), id="7")
FULL = ServeError(Code.QUEUE_FULL, "9 wait.", 0.5)
LATE = ServeError(Code.EXPIRED, "It waited too long.")
OWN = ServeError(Code.INVALID, "not like this", status=409)
GONE = ServeError(Code.NOT_FOUND, "There is none.", info=ErrorInfo.of(reasons.UNKNOWN_MODEL, model="m"))


@pytest.mark.parametrize(
    ("error", "is_refused", "code", "text"),
    [
        (
            FULL,
            True,
            Code.INTERNAL,
            "Model m - Error when running inference: [request id: 7] Exceeds maximum queue size",
        ),
        (FULL, False, Code.QUEUE_FULL, "[request id: 7] Exceeds maximum queue size"),
        (LATE, False, Code.EXPIRED, "Request timeout expired"),
        (OWN, True, Code.INTERNAL, "Model m - Error when running inference: not like this"),
        (GONE, False, Code.NOT_FOUND, "Request for unknown model: 'm' is not found"),
    ],
)
def test_what_is_refused_says_so_and_the_rest_is_the_models(error, is_refused, code, text):
    said = translate_error(error, CALL, is_refused)
    assert (said.code, said.message) == (code, text)


def test_what_a_model_says_itself_is_told_as_it_is():
    assert translate_error(OWN, CALL, False) is OWN


def test_a_circle_keeps_its_chain():
    class Busy:
        can_grow = False

        def holders(self):
            return [{1}]

    with pytest.raises(ServeError) as caught:
        CallGraph().check("m", Busy(), CallRef((1,), ("m",)))
    said = translate_error(caught.value, CALL, True)
    assert said.message.startswith(
        "Model m - Error when running inference: The call m -> m can never be served"
    )
