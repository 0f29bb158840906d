"""What grpcio says of itself, and what of it reaches the log."""

import logging
import sys

import pytest
from grpc._cython.cygrpc import AbortError, ExecuteBatchError

from trivium.frontends.grpc_server import is_worth_a_line


@pytest.mark.parametrize(
    ("error", "is_kept"),
    [(ExecuteBatchError("execute_batch", ()), False), (AbortError(), True), (ValueError("a bug"), True)],
)
def test_an_answer_that_found_its_client_gone_is_no_news(error: Exception, is_kept: bool) -> None:
    try:
        raise error
    except Exception:
        record = logging.LogRecord("grpc", logging.ERROR, "x.py", 1, "raised", (), sys.exc_info())
    assert is_worth_a_line(record) is is_kept


def test_what_carries_no_exception_is_kept() -> None:
    assert is_worth_a_line(logging.LogRecord("grpc", logging.WARNING, "x.py", 1, "slow", (), None))
