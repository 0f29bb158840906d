"""Answers of a completion in OpenAI's form: a whole one, and the chunks of a streamed one."""

from collections.abc import Sequence

import msgspec

from trivium.codecs.chat_answers import (
    LEAST,
    NO_EXTRAS,
    NULL,
    AnswerExtras,
    ChatIdentity,
    Words,
    encode_json,
    finish_text,
    named_id,
    usage_tail,
    usage_text,
)
from trivium.types.generation import Generated, GeneratedChoice, GenerationUsage, TokenText

_KIND = "text_completion"
Prompts = Sequence[Sequence[int]]
"""Ids of the tokens of each prompt."""


class CompletionLogprobs(msgspec.Struct, frozen=True, gc=False):
    """Lists tokens, the log probability of each, its alternatives, and where in the text of its choice it begins. The
    first token of a prompt has none.
    """

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None
    text_offset: list[int]


class CompletionForm(msgspec.Struct, frozen=True, gc=False):
    """Says what an answer tells of its tokens: with `logprobs` alternatives of each one (None: no log probabilities),
    and the extras; `choices` is how many there are of each prompt.
    """

    logprobs: int | None = None
    extras: AnswerExtras = NO_EXTRAS
    choices: int = 1


class CompletionChunks:
    """Writes the chunks of one answer. Where `tells_usage` every chunk has that field, and one more is the last."""

    __slots__ = ("_form", "_head", "_offsets", "_prompts", "_tail", "_words", "tells_usage")

    def __init__(self, identity: ChatIdentity, words: Words, tells_usage: bool, form: CompletionForm) -> None:
        self._head = _head(identity)
        self._words = words
        self._form = form
        self._tail = usage_tail(tells_usage)
        self._offsets: dict[int, int] = {}
        self._prompts: Prompts = ()
        self.tells_usage = tells_usage

    def documents(self, part: Generated) -> list[bytes]:
        """Return the chunks of a part, one for each sequence that goes on in it."""
        chunks: list[bytes] = []
        form = self._form
        extras = form.extras
        if extras.counts_parts and part.usage is not None:
            self._tail = usage_tail(True, part.usage)
        self._prompts = part.prompts or self._prompts
        for choice in part.choices:
            told = bool(choice.tokens and form.logprobs is not None) or bool(choice.ids and extras.tells_ids)
            if not (choice.text or choice.finish is not None or told):
                continue
            logprobs, finish = NULL, finish_text(choice, self._words)
            is_first = choice.index not in self._offsets
            offset = self._offsets.get(choice.index, 0)
            self._offsets[choice.index] = offset + len(choice.text)
            if form.logprobs is not None:
                logprobs = encode_json(
                    completion_logprobs(choice.tokens, form.logprobs, offset, extras.names_ids)
                )
            if extras.tells_ids:
                finish += _ids(choice, form, self._prompts if is_first else ())
            chunks.append(
                b'%b{"text":%b,"index":%d,"logprobs":%b,"finish_reason":%b%b'
                % (self._head, encode_json(choice.text), choice.index, logprobs, finish, self._tail)
            )
        return chunks

    def usage(self, usage: GenerationUsage) -> bytes:
        """Return the chunk that tells how many tokens there were."""
        return b'%b],"usage":%b}' % (self._head, usage_text(usage))


def completion(identity: ChatIdentity, words: Words, whole: Generated, form: CompletionForm) -> bytes:
    """Return a whole answer."""
    logprobs, names_ids = form.logprobs, form.extras.names_ids
    choices = [
        b'{"text":%b,"index":%d,"logprobs":%b,"finish_reason":%b%b}'
        % (
            encode_json(choice.text),
            choice.index,
            NULL
            if logprobs is None
            else encode_json(completion_logprobs(choice.tokens, logprobs, 0, names_ids)),
            finish_text(choice, words),
            _ids(choice, form, whole.prompts) if form.extras.tells_ids else b"",
        )
        for choice in sorted(whole.choices, key=lambda choice: choice.index)
    ]
    usage = usage_text(whole.usage) if whole.usage is not None else NULL
    return b'%b%b],"usage":%b}' % (_head(identity), b",".join(choices), usage)


def completion_logprobs(
    tokens: Sequence[TokenText], alternatives: int, offset: int, names_ids: bool = False
) -> CompletionLogprobs:
    """Return log probabilities of tokens in the form of completions; the chosen token is among its alternatives. With
    `names_ids` tokens are called by their ids.
    """
    tops: list[dict[str, float] | None] = []
    found = CompletionLogprobs([], [], tops if alternatives else None, [])
    for token in tokens:
        logprob = None if token.logprob is None else max(token.logprob, LEAST)
        found.tokens.append(named_id(token.id) if names_ids else token.name or token.text)
        found.token_logprobs.append(logprob)
        found.text_offset.append(offset)
        offset += len(token.text)
        if alternatives:
            tops.append(None if logprob is None else _top(token, logprob, names_ids))
    return found


def _top(token: TokenText, logprob: float, names_ids: bool) -> dict[str, float]:
    """Return the alternatives by name; where a strange vocabulary writes two alike, the second by its number."""
    name = token.name or token.text
    found = {named_id(token.id) if names_ids else name: logprob}
    for number, other, p in token.alternatives:
        if (number, other) != (token.id, name):
            found[named_id(number) if names_ids or other in found else other] = max(p, LEAST)
    return found


def _ids(choice: GeneratedChoice, form: CompletionForm, prompts: Prompts) -> bytes:
    """Return the fields of a choice that have the ids of its tokens, and of its prompt, if that is given."""
    told = b',"token_ids":%b' % encode_json(choice.ids)
    if not prompts:
        return told
    return b'%b,"prompt_token_ids":%b' % (told, encode_json(prompts[choice.index // form.choices]))


def _head(identity: ChatIdentity) -> bytes:
    fields = {"id": identity.id, "object": _KIND, "created": identity.created, "model": identity.model}
    return b'%b,"choices":[' % encode_json(fields)[:-1]
