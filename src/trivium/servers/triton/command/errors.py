"""Errors that keep `tritonserver` from starting: the kind of failure, then the text."""


class CannotStart(Exception):
    """`code` is one of the original's words for kinds of failures."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code} - {message}")
