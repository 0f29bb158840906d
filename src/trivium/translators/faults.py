"""Errors of translators: what a client sent is at fault, or the translator is."""

from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError

INFO = ErrorInfo.of(reasons.TRANSLATION)


def unfit(message: str) -> ServeError:
    """Return the error of a request that a translator cannot take."""
    return ServeError(Code.INVALID, message, info=INFO)


def refusal_in_words(words: str, more: str = "") -> ServeError:
    """Return the error of a request that DJL refuses in these `words`; `more` is what we add to them."""
    message = f"{words} {more}" if more else words
    return ServeError(Code.INVALID, message, info=ErrorInfo.of(reasons.TRANSLATION, words=words))


def failed(message: str) -> ServeError:
    """Return the error of a translator that raised, or made nothing that can be used."""
    return ServeError(Code.MODEL_FAILED, message, info=INFO)


def refused(error: ServeError) -> ServeError:
    """Return an error of a request as a translator's."""
    info = error.info if error.reason == reasons.TRANSLATION else INFO
    return ServeError(error.code, error.message, info=info)
