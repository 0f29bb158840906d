"""Answers of a completion in OpenAI's form: a whole one, and the chunks of a streamed one."""

from collections.abc import Sequence

import msgspec

from trivium.codecs.chat_answers import LEAST, NULL, ChatIdentity, Words, encode_json, finish_text, usage_text
from trivium.types.generation import Generated, GenerationUsage, TokenText

_KIND = "text_completion"


class CompletionLogprobs(msgspec.Struct, frozen=True, gc=False):
    """Lists tokens, the log probability of each, its alternatives, and where in the text of its choice it begins."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]] | None
    text_offset: list[int]


class CompletionChunks:
    """Writes the chunks of one answer. Where `tells_usage` every chunk has that field, and one more is the last."""

    __slots__ = ("_alternatives", "_has_logprobs", "_head", "_offsets", "_tail", "_words", "tells_usage")

    def __init__(self, identity: ChatIdentity, words: Words, logprobs: int | None, tells_usage: bool) -> None:
        self._head = _head(identity)
        self._words = words
        self._has_logprobs = logprobs is not None
        self._alternatives = logprobs or 0
        self._tail = b'}],"usage":null}' if tells_usage else b"}]}"
        self._offsets: dict[int, int] = {}
        self.tells_usage = tells_usage

    def documents(self, part: Generated) -> list[bytes]:
        """Return the chunks of a part, one for each sequence that goes on in it."""
        chunks: list[bytes] = []
        for choice in part.choices:
            if not (choice.text or choice.finish is not None or (choice.tokens and self._has_logprobs)):
                continue
            logprobs = NULL
            if self._has_logprobs:
                offset = self._offsets.get(choice.index, 0)
                self._offsets[choice.index] = offset + len(choice.text)
                logprobs = encode_json(completion_logprobs(choice.tokens, self._alternatives, offset))
            chunks.append(
                b'%b{"text":%b,"index":%d,"logprobs":%b,"finish_reason":%b%b'
                % (
                    self._head,
                    encode_json(choice.text),
                    choice.index,
                    logprobs,
                    finish_text(choice, self._words),
                    self._tail,
                )
            )
        return chunks

    def usage(self, usage: GenerationUsage) -> bytes:
        """Return the chunk that tells how many tokens there were."""
        return b'%b],"usage":%b}' % (self._head, usage_text(usage))


def completion(identity: ChatIdentity, words: Words, logprobs: int | None, whole: Generated) -> bytes:
    """Return a whole answer; with `logprobs` alternatives of each token, None without any."""
    choices = [
        b'{"text":%b,"index":%d,"logprobs":%b,"finish_reason":%b}'
        % (
            encode_json(choice.text),
            choice.index,
            NULL if logprobs is None else encode_json(completion_logprobs(choice.tokens, logprobs, 0)),
            finish_text(choice, words),
        )
        for choice in sorted(whole.choices, key=lambda choice: choice.index)
    ]
    usage = usage_text(whole.usage) if whole.usage is not None else NULL
    return b'%b%b],"usage":%b}' % (_head(identity), b",".join(choices), usage)


def completion_logprobs(tokens: Sequence[TokenText], alternatives: int, offset: int) -> CompletionLogprobs:
    """Return log probabilities of tokens in the form of completions; the chosen token is among its alternatives."""
    tops: list[dict[str, float]] = []
    found = CompletionLogprobs([], [], tops if alternatives else None, [])
    for token in tokens:
        logprob = LEAST if token.logprob is None else max(token.logprob, LEAST)
        name = token.name or token.text
        found.tokens.append(name)
        found.token_logprobs.append(logprob)
        found.text_offset.append(offset)
        offset += len(token.text)
        if alternatives:
            tops.append(_top(token, name, logprob))
    return found


def _top(token: TokenText, name: str, logprob: float) -> dict[str, float]:
    """Return the alternatives by name; where a strange vocabulary writes two alike, the second by its number."""
    found = {name: logprob}
    for number, other, p in token.alternatives:
        if (number, other) != (token.id, name):
            found[other if other not in found else f"token_id:{number}"] = max(p, LEAST)
    return found


def _head(identity: ChatIdentity) -> bytes:
    fields = {"id": identity.id, "object": _KIND, "created": identity.created, "model": identity.model}
    return b'%b,"choices":[' % encode_json(fields)[:-1]
