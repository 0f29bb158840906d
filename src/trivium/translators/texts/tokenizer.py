"""The tokenizer of a model: texts into ids, padded together, and ids back into text.

Source: spec sheet `djl`, section 10, and what DJL makes of `tokenizer.json`, `vocab.json` with `merges.txt`, and a
named configuration. `vocab.txt` is read as BERT's word pieces, which DJL's older packages have.
"""

import json
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from trivium.codecs.text_growth_policy import growth
from trivium.codecs.tokenizer_fingerprint import tokenizer_fingerprint
from trivium.codecs.vanishing_tokens import vanishing_token
from trivium.machine.extras import lacking
from trivium.translators.arguments import MOST_PADDING, MOST_TOKENS, TokenizerArguments
from trivium.translators.files import file_in, read_file, read_json, refusal, text_of
from trivium.types.errors import Code, ServeError, said_by

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

Text = str | tuple[str, str]


class TokenRow(Protocol):
    """The encoding of one row: what answers are made from, of the attributes that `tokenizers.Encoding` has."""

    @property
    def ids(self) -> list[int]:
        """Return the number of each token."""

    @property
    def attention_mask(self) -> Sequence[int]:
        """Return 1 for each token that is none of the padding."""

    @property
    def type_ids(self) -> Sequence[int]:
        """Return the kind, for the model, of the text to which each token belongs."""

    @property
    def special_tokens_mask(self) -> Sequence[int]:
        """Return 1 for each token that stands for no text."""

    @property
    def sequence_ids(self) -> Sequence[int | None]:
        """Return to which text of a pair each token belongs; None for one of no text."""

    @property
    def offsets(self) -> Sequence[tuple[int, int]]:
        """Return the letters of the text that each token stands for."""

    @property
    def tokens(self) -> Sequence[str]:
        """Return the tokens themselves."""


Made = TypeVar("Made")

LARGE = 4 * 2**20
"""Bytes of a tokenizer's file from which on its model has a process of its own, where nobody says otherwise."""

MOST_LETTERS = 2**26
MOST_GROWTH = 64
MOST_SPECIAL = 4096

_SPECIAL = ("bos_token", "cls_token", "eos_token", "sep_token", "unk_token", "pad_token")
_MOST_TOKENS_OF_A_MODEL = 512
_CLEANED = (
    *((f" {mark}", mark) for mark in (".", "?", "!", ",")),
    (" ' ", "'"),
    *((f" {end}", end) for end in ("n't", "'m", "'s", "'ve", "'re")),
)


class TextTokenizer:
    """Tokenizes the texts of a model. UNSUPPORTED with the install command without the package `tokenizers`.

    LOAD_FAILED, with the file and its fault, where the model's files make no tokenizer.
    """

    def __init__(self, folder: Path, arguments: TokenizerArguments) -> None:
        require_tokenizers()
        self._arguments = arguments
        config = read_json(folder, arguments.config_path) if arguments.config_path else {}
        self._tokenizer = _loaded(folder, arguments.path, config)
        self._adds_special = _first(
            arguments.add_special_tokens, any(map(config.get, _SPECIAL)) if config else True
        )
        self._strips_accents = bool(_first(arguments.strip_accents, config.get("strip_accents")))
        self._prefixes = bool(_first(arguments.add_prefix_space, config.get("add_prefix_space")))
        self._cleans = config.get("clean_up_tokenization_spaces") is True
        self._bound(_first(arguments.model_max_length, _model_max_length(config)))
        self._pad_as(config)
        self._growth = _growth(self._tokenizer.normalizer)

    def encode(self, texts: Sequence[Text]) -> "list[Encoding]":
        """Return the encodings of texts or pairs, equally long. INVALID for texts that cannot be cut to fit."""
        prepared = [self._prepared(text) for text in texts]
        self._judge_growth(prepared)
        try:
            found = _guarded(
                lambda: self._tokenizer.encode_batch(prepared, add_special_tokens=self._adds_special)
            )
        except ValueError as error:
            raise ServeError(Code.INVALID, f"The text cannot be tokenized: {error}.") from error
        if len({len(encoding.ids) for encoding in found}) > 1:
            raise ServeError(
                Code.INVALID,
                "The texts have different lengths, and the model's padding is do_not_pad. Send one each.",
            )
        return list(found)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids."""
        text = str(self._tokenizer.decode(ids, skip_special_tokens=not self._adds_special))
        for before, after in _CLEANED if self._cleans else ():
            text = text.replace(before, after)
        return text

    def fingerprint(self) -> str:
        """Return what tells this from a tokenizer that makes other tokens of a text."""
        return tokenizer_fingerprint(self._tokenizer.to_str(), self._tokenizer.get_vocab())

    def id_of(self, token: str) -> int | None:
        """Return the id of a token, None where the vocabulary does not have it."""
        found: int | None = self._tokenizer.token_to_id(token)
        if found is None and token:
            ids = self._tokenizer.encode(token, add_special_tokens=False).ids
            found = ids[0] if len(ids) == 1 else None
        return found

    def _judge_growth(self, texts: Sequence[Text]) -> None:
        size = sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in texts)
        if self._growth > 1 and size * self._growth > MOST_LETTERS:
            raise ServeError(
                Code.INVALID,
                f"The texts have {size} letters, of each of which the model's tokenizer may make {self._growth}; "
                f"expected at most {MOST_LETTERS} in all. Send less, or mend the normalizer in tokenizer.json.",
            )

    def _prepared(self, text: Text) -> Text:
        if not isinstance(text, str):
            return self._cased(text[0]), self._cased(text[1])
        if self._prefixes and not text.startswith(" "):
            text = f" {text}"
        text = self._cased(text)
        if self._strips_accents:
            text = "".join(
                letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter)
            )
        return text

    def _cased(self, text: str) -> str:
        return text.lower() if self._arguments.lower_case else text

    def _bound(self, model_max_length: int) -> None:
        """Set the number of tokens at which a text is cut off."""
        asked, own = self._arguments, self._tokenizer.truncation or {}
        _check(own, ("max_length", "stride"), MOST_TOKENS)
        longest = min(_first(asked.max_length, own.get("max_length"), model_max_length), model_max_length)
        multiple = asked.pad_to_multiple_of
        if asked.padding == "max_length" and multiple and longest % multiple:
            rounded = longest + multiple - longest % multiple
            longest = rounded if rounded <= model_max_length else max(rounded - multiple, 1)
        self._longest = longest
        if asked.truncation == "do_not_truncate":
            self._tokenizer.no_truncation()
            return
        stride = _first(asked.stride, own.get("stride"), 0)
        try:
            _guarded(
                lambda: self._tokenizer.enable_truncation(longest, stride=stride, strategy=asked.truncation)
            )
        except ValueError as error:
            raise refusal(
                "maxLength", f"is {longest} with stride {stride}: {error}", "Make it larger."
            ) from error

    def _pad_as(self, config: dict[str, Any]) -> None:
        """Set how texts of one batch become equally long."""
        asked, own = self._arguments, self._tokenizer.padding or {}
        _check(own, ("pad_to_multiple_of",), MOST_PADDING)
        self._tokenizer.no_padding()
        if asked.padding == "do_not_pad":
            return
        token = own.get("pad_token") or config.get("pad_token") or "[PAD]"
        known = self._tokenizer.token_to_id(token) if isinstance(token, str) else None
        self._tokenizer.enable_padding(
            direction=own.get("direction", "right"),
            pad_id=_first(own.get("pad_id"), known, 0),
            pad_type_id=own.get("pad_type_id", 0),
            pad_token=str(token),
            length=self._longest if asked.padding == "max_length" else None,
            pad_to_multiple_of=_first(asked.pad_to_multiple_of, own.get("pad_to_multiple_of")) or None,
        )


def require_tokenizers() -> None:
    """Import the package `tokenizers`. UNSUPPORTED with the install command where it is missing."""
    try:
        import tokenizers  # noqa: F401
    except ImportError as error:
        raise lacking("Translators of texts", error, "translators") from error


def _loaded(folder: Path, path: str, config: dict[str, Any]) -> "Tokenizer":
    """Build the tokenizer from the files that are there; `path` is a file, or a folder of them."""
    from tokenizers import Tokenizer, models

    prefix = path
    if path and file_in(folder, path).is_file():
        return _built(path, lambda: Tokenizer.from_str(text_of(path, read_file(folder, path))))
    place = file_in(folder, path) if path else folder
    named = {name: f"{prefix}/{name}" if prefix else name for name in _FILES}
    there = [name for name in _FILES if (place / name).is_file()]
    if "tokenizer.json" in there:
        name = named["tokenizer.json"]
        return _built(name, lambda: Tokenizer.from_str(text_of(name, read_file(folder, name))))
    if "vocab.json" in there and "merges.txt" in there:
        vocabulary = read_json(folder, named["vocab.json"])
        merges = _merges(
            named["merges.txt"], text_of(named["merges.txt"], read_file(folder, named["merges.txt"]))
        )
        return _built(named["vocab.json"], lambda: Tokenizer(models.BPE(vocabulary, merges)))
    if "vocab.txt" in there:
        if not config and "tokenizer_config.json" in there:
            config = read_json(folder, named["tokenizer_config.json"])
        return _word_pieces(named["vocab.txt"], read_file(folder, named["vocab.txt"]), config)
    raise refusal(
        f"{prefix or folder.name}: tokenizer.json",
        "is not there, nor vocab.json with merges.txt, nor vocab.txt",
        "Put the model's tokenizer.json into its folder.",
    )


def is_large(folder: Path, arguments: TokenizerArguments) -> bool:
    """Return whether reading the tokenizer would hold everybody up who shares the process: the package keeps the
    interpreter to itself for a second per 30 megabytes.
    """
    try:
        place = file_in(folder, arguments.path) if arguments.path else folder
    except ServeError:
        return False  # it cannot be read anyway
    files = [place] if place.is_file() else [place / name for name in _FILES]
    return any(file.is_file() and file.stat().st_size > LARGE for file in files)


_FILES = ("tokenizer.json", "vocab.json", "merges.txt", "vocab.txt", "tokenizer_config.json")


def _merges(name: str, text: str) -> list[tuple[str, str]]:
    merges = []
    for number, line in enumerate(text.splitlines(), 1):
        parts = line.split(" ")
        if line.startswith("#version") or not line:
            continue
        if len(parts) != 2:
            raise refusal(
                f"{name}:{number}", f"has {len(parts)} parts, not 2", "Write one pair of tokens a line."
            )
        merges.append((parts[0], parts[1]))
    return merges


def _word_pieces(name: str, data: bytes, config: dict[str, Any]) -> "Tokenizer":
    """Build BERT's tokenizer from one word piece a line."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    vocabulary: dict[str, int] = {}
    for number, line in enumerate(text_of(name, data).splitlines()):
        if line in vocabulary:
            raise refusal(f"{name}:{number + 1}", f"repeats {line[:40]!r}", "Write each token once.")
        vocabulary[line] = number
    for token in ("[UNK]", "[CLS]", "[SEP]", "[PAD]"):
        if token not in vocabulary:
            raise refusal(name, f"has no {token}", "Write one token a line, these four among them.")
    lower = config.get("do_lower_case", True) is not False
    accents = config.get("strip_accents")

    def build() -> "Tokenizer":
        made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer(
            lowercase=lower, strip_accents=accents if isinstance(accents, bool) else None
        )
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        made.decoder = decoders.WordPiece()
        made.post_processor = processors.BertProcessing(
            ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
        )
        made.add_special_tokens(["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"])
        return made

    return _built(name, build)


def _built(name: str, build: "Callable[[], Tokenizer]") -> "Tokenizer":
    try:
        made = _guarded(build)
        _judge_parts(name, made)
        return made
    except ServeError:
        raise
    except ValueError as error:
        raise refusal(
            name, f"makes no tokenizer: {error}", "Write the file anew, with the tokenizers package."
        ) from error


def _check(settings: dict[str, Any], names: Sequence[str], most: int) -> None:
    """Refuse numbers of a tokenizer's file by which each text would fill the memory."""
    for name in names:
        if (settings.get(name) or 0) > most:
            raise refusal(
                f"tokenizer.json: {name}", f"is {settings[name]}, over the limit of {most}", "Write less."
            )


def _growth(part: Any) -> int:
    """Return how many times longer a part of a tokenizer makes a text; its state is the JSON of its file."""
    return growth(None if part is None else json.loads(part.__getstate__()))


def _judge_parts(name: str, made: "Tokenizer") -> None:
    """Refuse what would fill the memory with each text: decoders that lengthen it, and crowds of special tokens,
    and tokens of nothing.
    """
    if (found := _growth(made.decoder)) > MOST_GROWTH:
        raise refusal(
            f"{name}: decoder", f"makes a text {found} times as long", f"At most {MOST_GROWTH} times is read."
        )
    count = made.num_special_tokens_to_add(True)
    if count > MOST_SPECIAL:
        raise refusal(
            f"{name}: post_processor",
            f"adds {count} tokens to each text",
            f"At most {MOST_SPECIAL} are read.",
        )
    if (lost := _guarded(lambda: vanishing_token(made))) is not None:
        raise refusal(
            f"{name}: added_tokens",
            f"has {lost[:40]!r}, of which the normalizer leaves nothing: texts may be tokenized without end",
            "Set its normalized to false, or remove it.",
        )


def _guarded(call: Callable[[], Made]) -> Made:
    """Call the package; whatever it raises, its panics among it, becomes a ValueError."""
    try:
        return call()
    except (KeyboardInterrupt, SystemExit, MemoryError, ServeError):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        raise ValueError(said_by(error)[:300] or type(error).__name__) from error


def _model_max_length(config: dict[str, Any]) -> int:
    """Return what a configuration says; the number that stands for "no limit" is no limit of a model."""
    found = config.get("model_max_length")
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return (
        int(found)
        if found is not None and is_number and 1 <= found <= MOST_TOKENS
        else _MOST_TOKENS_OF_A_MODEL
    )


def _first(*values: Any) -> Any:
    """Return the first value that is not None."""
    return next((value for value in values if value is not None), None)
