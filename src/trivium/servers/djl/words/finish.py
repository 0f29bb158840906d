"""LMI's words for why a text has ended. Source: spec sheet `djl`, section 11.3."""

from trivium.codecs.chat_answers import Words
from trivium.types.generation import Finish

WORDS: Words = {
    Finish.LENGTH: "length",
    Finish.EOS: "eos_token",
    Finish.STOP: "stop_sequence",
    Finish.CANCELLED: "abort",
    Finish.ERROR: "error",
}
