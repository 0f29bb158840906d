"""Finds the name that somebody may have meant: comparing texts by likeness is dear, and stands here alone. Pure.

Source: the longest common subsequence by bits, after Crochemore and others (2001) and Hyyrö (2004). Likeness is twice
its length by the length of both: one pass over the letters of each known name, without a call for any of them.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import islice

LONGEST = 100
"""Characters that are compared: the time grows with the product of two lengths, and a name may come from a stranger."""

MOST = 1000
"""Names that it is compared with."""


SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "max_length": ("max_new_tokens", "max_model_len"),
    "max_output_tokens": ("max_new_tokens", "max_tokens"),
    "num_predict": ("max_new_tokens", "max_tokens"),
    "n_predict": ("max_new_tokens", "max_tokens"),
    "num_ctx": ("max_model_len",),
    "n_ctx": ("max_model_len",),
    "max_seq_len": ("max_model_len",),
    "max_sequence_length": ("max_model_len",),
    "context_length": ("max_model_len",),
    "guided_json": ("response_format",),
    "guided_regex": ("response_format",),
    "guided_choice": ("response_format",),
    "guided_grammar": ("response_format",),
    "json_schema": ("response_format",),
    "repeat_penalty": ("repetition_penalty",),
    "num_return_sequences": ("n", "best_of"),
    "stop_sequences": ("stop",),
    "num_gpus": ("tensor_parallel_degree", "tensor_parallel_size"),
    "tensor_parallel_size": ("tensor_parallel_degree",),
    "tensor_parallel_degree": ("tensor_parallel_size",),
    "torch_dtype": ("dtype",),
    "hf_model_id": ("model_id",),
    "model_name_or_path": ("model_id",),
}
"""Other libraries' names -> what the same thing is called by those that we stand in for, the likeliest first."""


def synonym(name: str, known: Collection[str]) -> str:
    """Return the known name that means the same, behind the same beginning with a dot; empty for none."""
    start, dot, bare = name.rpartition(".")
    for other in SYNONYMS.get(bare.lower().replace("-", "_"), ()):
        if f"{start}{dot}{other}" in known:
            return f"{start}{dot}{other}"
    return ""


def near(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known name that means the same, or is most like it; empty where none is, by `cutoff` from 0 to 1."""
    names = tuple(islice(known, MOST))
    return synonym(name[:LONGEST], names) or next(iter(nearest(name, names, 1, cutoff)), "")


def nearest(name: str, known: Iterable[str], count: int, cutoff: float = 0.6) -> list[str]:
    """Return so many known names that are like it at most, the likest first."""
    wanted = name[:LONGEST]
    size = len(wanted)
    places: dict[str, int] = {}
    bit = 1
    for letter in wanted:
        places[letter] = places[letter] | bit if letter in places else bit
        bit <<= 1
    found = []
    for one in islice(known, MOST):
        both = size + len(one)
        if both - size > LONGEST:
            continue
        unmatched = bit - 1  # a bit for each letter of the name that has no partner yet
        for letter in one:
            if letter in places:
                here = unmatched & places[letter]
                unmatched = ((unmatched + here) | (unmatched - here)) & (bit - 1)
        likeness = 2 * (size - unmatched.bit_count()) / both if both else 1.0
        if likeness >= cutoff:
            found.append((likeness, one))
    return [one for _, one in sorted(found, reverse=True)[:count]]
