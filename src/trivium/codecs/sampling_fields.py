"""Fields of a request that say how tokens are chosen: one table of rules, by the neutral name of what they set.

Each dialect has a table from its own names to these; the rules of types and ranges are here. Pure.
"""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from trivium.codecs.request_fields import RequestFields
from trivium.types.generation import Sampling

MOST_STOPS, MOST_TOKENS, MOST_CHOICES, MOST_ALTERNATIVES = 64, 2**31 - 1, 128, 20

Take = Callable[[RequestFields, str], Any]
Names = Mapping[str, str]
"""A dialect's name of a field -> that of the field of `Sampling` that it sets, or a rule of its own."""

RefusedFields = Mapping[str, tuple[str, tuple[object, ...]]]
"""A field that is refused -> what to do instead, and the values that mean nothing and are taken."""


def number(lowest: float, highest: float) -> Take:
    """Return the rule of a number within bounds."""
    return lambda fields, name: fields.number(name, lowest, highest)


def integer(lowest: float, highest: float) -> Take:
    """Return the rule of an integer within bounds."""
    return lambda fields, name: fields.integer(name, lowest, highest)


def _top_k(fields: RequestFields, name: str) -> int | None:
    found = fields.integer(name, -1, MOST_TOKENS)
    return None if found is None else max(found, 0)


def _truncate(fields: RequestFields, name: str) -> int | None:
    found = fields.integer(name, -1, MOST_TOKENS)
    if found == 0:
        raise fields.unfit(
            name, 0, f"an integer from 1 to {MOST_TOKENS}, or -1 for as many as there is room for"
        )
    return found


RULES: Mapping[str, Take] = {
    "samples": RequestFields.flag,
    "temperature": number(0, 100),
    "top_k": _top_k,
    "top_p": number(0, 1),
    "min_p": number(0, 1),
    "typical_p": number(0, 1),
    "repetition_penalty": number(0.01, 100),
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "logit_bias": RequestFields.biases,
    "seed": integer(-(2**63), 2**63 - 1),
    "max_tokens": integer(1, MOST_TOKENS),
    "min_tokens": integer(0, MOST_TOKENS),
    "ignores_eos": RequestFields.flag,
    "stop": lambda fields, name: fields.texts(name, MOST_STOPS),
    "stop_ids": lambda fields, name: fields.integers(name, MOST_STOPS),
    "keeps_stop": RequestFields.flag,
    "logprobs": integer(0, MOST_ALTERNATIVES),
    "choices": integer(1, MOST_CHOICES),
    "best_of": integer(1, MOST_CHOICES),
    "shows_special": RequestFields.flag,
    "processor": RequestFields.text,
    "truncate": _truncate,
}
REPORTED: Mapping[str, tuple[object, ...]] = {
    **dict.fromkeys(("length_penalty", "diversity_penalty"), (1, 1.0, 0, 0.0)),
    "early_stopping": (False,),
    "use_cache": (True,),
    "spaces_between_special_tokens": (True,),
    "guided_decoding_backend": (),
    "priority": (0,),
    "request_id": (),
    "cache_salt": (),
    "keep_alive": (),
}
"""Fields that clients of other servers send, and that change nothing of a text here -> values that ask for nothing."""

_FORM = "Say in the prompt which form you want."
MEANINGFUL: RefusedFields = {
    **dict.fromkeys(("guided_json", "guided_json_object", "guided_regex", "guided_choice"), (_FORM, ())),
    **dict.fromkeys(("guided_grammar", "guided_decoding", "structured_outputs"), (_FORM, ())),
    **dict.fromkeys(("json_schema", "grammar"), (_FORM, ())),
    "use_beam_search": ("Leave it out: beams are not searched here.", (False,)),
    "num_beams": ("Leave it out: beams are not searched here.", (1,)),
    "prompt_logprobs": ("Leave it out: there are no log probabilities of a prompt.", (0, False)),
    "bad_words": ("Use 'logit_bias' against single tokens.", ([],)),
    "allowed_token_ids": ("Use 'logit_bias'.", ([],)),
    "truncation_side": ("Leave it out: the last tokens are those that are kept.", ("left",)),
    "logprob_token_ids": ("Send 'logprobs' with as many alternatives as are needed.", ([],)),
    "thinking_token_budget": ("Leave it out, or send 'max_tokens'.", (-1,)),
    "repetition_detection": ("Send 'repetition_penalty'.", ()),
    "structural_tag": (_FORM, ()),
    "guided_whitespace_pattern": (_FORM, ()),
    "detokenize": ("Text is what is answered; leave it out.", (True,)),
    "logits_processors": ("Send 'logits_processor' with the name of one of the model's own.", ([],)),
    "chat_template": ("The model's own is used; put another one into its folder as chat_template.jinja.", ()),
    "documents": ("Put them into a message.", ([],)),
}
"""Fields without which an answer would mean something else -> what to do, and values that ask for nothing. Where fields
that nobody knows are ignored, these are refused.
"""

COMMON_NAMES: Mapping[str, str] = {
    name: name
    for name in (
        *("temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty"),
        *("presence_penalty", "frequency_penalty", "logit_bias", "seed"),
    )
}
"""Fields that are called on all wires as here."""

HIDES_SPECIAL = "hides_special"
"""Names the opposite of `shows_special`, as most dialects have it."""

Said = dict[str, Any]
"""Fields of `Sampling` that a request says, by name."""


def read_sampling(fields: RequestFields, names: Names, rules: Mapping[str, Take] = RULES) -> Said:
    """Read what the fields of a dialect say. INVALID for what is none of its type or range, and for two names of one
    thing with two values.
    """
    found: Said = {}
    for name, attribute in names.items():
        if name not in fields:
            continue
        if attribute == HIDES_SPECIAL:
            hides = fields.flag(name)
            attribute, value = "shows_special", None if hides is None else not hides
        else:
            value = rules[attribute](fields, name)
        if value is None:
            continue
        if found.setdefault(attribute, value) != value:
            raise fields.contradiction(
                name, "another field says the same thing with another value. Send one."
            )
    return found


def sampling_of(said: Mapping[str, Any], fields: RequestFields, names: Names) -> Sampling:
    """Return all that was said as one value. INVALID where two fields contradict each other; `names` are those that
    the error speaks of.
    """
    sampling = Sampling(**said)
    own = {attribute: name for name, attribute in reversed(list(names.items()))}
    if sampling.best_of is not None and sampling.best_of < sampling.choices:
        why = f"it is less than '{own['choices']}', {sampling.choices}. Send at least as many."
        raise fields.contradiction(own["best_of"], why)
    least, most = sampling.min_tokens, sampling.max_tokens
    if (least or 0) > (inf if most is None else most):
        why = f"it is more than '{own['max_tokens']}', {most}. Send at most as many."
        raise fields.contradiction(own["min_tokens"], why)
    return sampling


def judge_others(
    fields: RequestFields, refused: RefusedFields, without_effect: Mapping[str, tuple[object, ...]] = {}
) -> None:
    """Report what has no effect, and refuse what would change the meaning of the answer if it were dropped."""
    fields.report(without_effect)
    for table in (refused,) if fields.ignored is None else (refused, MEANINGFUL):
        for name, (way_out, neutral) in table.items():
            fields.refuse(name, way_out, *neutral)
