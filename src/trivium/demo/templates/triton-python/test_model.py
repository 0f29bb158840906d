"""The model in this process: a debugger stops in it."""

import numpy as np

from trivium.testing import handler


def test_words_are_counted() -> None:
    with handler("models/words") as h:
        assert h.infer({"text": np.array([[b"to be or not"]], object)})["words"].tolist() == [[4]]


def test_a_wrong_tensor_is_refused() -> None:
    with handler("models/words") as h:
        assert h.infer({"text": np.zeros((1, 1))}).error is not None
