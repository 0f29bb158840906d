"""Long texts of translators are encoded in a helper process, which is ended where that takes too long."""

from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

from trivium.codecs.text_bounds import MOST_MEMORY, SECONDS
from trivium.machine.helper_process import EndOfWork, HelperLane, HelperProcess, WorkEnded
from trivium.translators.arguments import TokenizerArguments
from trivium.translators.texts.text_work import EncodedRow, as_work, from_work, text_work
from trivium.translators.texts.tokenizer import Text, TextTokenizer
from trivium.types.errors import Code, ServeError, said_by

Encode = Callable[[Sequence[Text]], Sequence[EncodedRow]]

_WHAT = "The text cannot be tokenized"


class LongTexts:
    """Has a process from its first text on. `tokenizer` is the one that was made of folder and arguments; one thread at
    a time uses this.
    """

    def __init__(self, folder: Path, arguments: TokenizerArguments, tokenizer: TextTokenizer) -> None:
        self._folder = folder
        self._arguments = arguments
        self._tokenizer = tokenizer
        self._process: HelperProcess | None = None
        self._lane: HelperLane | None = None

    def encoding(self) -> Encode:
        """Return what encodes the texts of requests that came now: together they have the seconds of one, since all who
        use the model wait for them. It raises ServeError for what is late, or took too much memory.
        """
        came_at = monotonic()
        return lambda rows: self._encoded(rows, came_at)

    def close(self) -> None:
        """End the process."""
        if self._lane is not None:
            self._lane.close()
        if self._process is not None:
            self._process.close()

    def _encoded(self, rows: Sequence[Text], came_at: float) -> Sequence[EncodedRow]:
        if self._lane is None:
            self._process = HelperProcess(
                text_work(self._folder, self._arguments, self._tokenizer), MOST_MEMORY
            )
            self._lane = HelperLane(self._process, 0)
        try:
            told = self._lane.do(as_work(rows), came_at, SECONDS, _is_wanted)
        except WorkEnded as ended:
            raise _ended_early(ended) from ended
        except OSError as error:
            raise ServeError(Code.MODEL_FAILED, f"{_WHAT}: {said_by(error)}.") from error
        return from_work(told)


def _is_wanted() -> bool:
    """Nobody tells a translator that a request has been cancelled: its seconds are its end."""
    return True


def _ended_early(ended: WorkEnded) -> ServeError:
    if ended.reason is EndOfWork.DIED:
        text = f"that ended the process which reads texts, and may have {MOST_MEMORY >> 20} MiB of memory for one"
        return ServeError(Code.MODEL_FAILED, f"{_WHAT}: {text}. Send less, or look at tokenizer.json.")
    if not ended.has_begun:
        text = f"others of its batch took the {SECONDS:g} s that long texts have together. Send it again"
        return ServeError(Code.EXPIRED, f"{_WHAT}: {text}.")
    text = f"it took longer than {SECONDS:g} s, and was ended"
    return ServeError(Code.EXPIRED, f"{_WHAT}: {text}. Send less, or look at tokenizer.json.")
