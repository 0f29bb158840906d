"""What holds for a tokenizer of any kind: behind its prompt, a continuation says what all tokens say at once."""

from collections.abc import Sequence

from trivium.engines.hf.answers import ChosenToken, SequenceAnswer, TokenReading
from trivium.engines.hf.detokenizer import Decode, Detokenizer
from trivium.engines.hf.text_loading import token_names
from trivium.types.generation import Finish, Sampling

BROKEN = "\N{REPLACEMENT CHARACTER}"


def reading(made) -> TokenReading:
    """How the tokens of a tokenizer of transformers are read."""

    def decode(tokens):
        return str(made.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def decode_all(tokens):
        return str(made.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    special = frozenset(made.all_special_ids)
    return TokenReading(decode, decode_all, token_names(made, decode_all), special, frozenset(), special)


def continued(decode: Decode, ids: Sequence[int], cut: int, hidden: frozenset[int] = frozenset()) -> str:
    """What the tokens from `cut` on say behind the others, token by token."""
    detokenizer = Detokenizer(decode, ids[:cut], hidden)
    return "".join(map(detokenizer.push, ids[cut:])) + detokenizer.end()


def check_wherever_a_prompt_ends(
    decode: Decode, ids: Sequence[int], hidden: frozenset[int] = frozenset()
) -> None:
    """A prompt that ends with a whole character, and what follows it, are the whole text. What follows the piece of a
    character ends it, and repeats nothing that a stream had said before.
    """
    whole = decode(ids)
    for cut in range(len(ids) + 1):
        before = decode(ids[:cut])
        if before.endswith(BROKEN):
            alone = Detokenizer(decode, hidden=hidden)
            before = "".join(map(alone.push, ids[:cut]))
        assert before + continued(decode, ids, cut, hidden) == whole, cut


def check_stops(read: TokenReading, ids: Sequence[int], cut: int, size: int) -> None:
    """A stop text of so many characters is cut wherever it begins behind the first `cut` tokens."""
    before = read.decode(ids[:cut])
    rest = read.decode(ids)[len(before) :]
    for start in range(len(rest) - size + 1):
        stop = rest[start : start + size]
        answer = SequenceAnswer(Sampling(stop=(stop,)), read, 1000, "", ids[:cut])
        texts = []
        for token in ids[cut:]:
            answer.take(ChosenToken(token))
            part = answer.part(0)
            texts.append(part.text if part is not None else "")
            if answer.finish is not None:
                break
        assert answer.finish is Finish.STOP
        assert "".join(texts) == rest[: rest.index(stop)]
