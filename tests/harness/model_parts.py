"""Keeps the parts that a served model is made of, for tests that drive one of them by hand."""

from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from unittest.mock import patch

from trivium.core.models import model_pool, served_model


@contextmanager
def kept_parts():
    """The pool, queue, scaler and counters of the model that is made meanwhile, by these names."""
    parts, answering = SimpleNamespace(), served_model.answering

    def keep(name, make):
        def made(*args):
            part = make(*args)
            setattr(parts, name, part)
            return part

        return made

    def answered(*args):
        parts.counters, responses = answering(*args)
        return parts.counters, responses

    with ExitStack() as stack:
        places = (
            ("pool", model_pool, "Pool"),
            ("queue", served_model, "RequestQueue"),
            ("scaler", served_model, "Scaler"),
        )
        for name, module, attribute in places:
            make = keep(name, getattr(module, attribute))
            stack.enter_context(patch.object(module, attribute, make))
        stack.enter_context(patch.object(served_model, "answering", answered))
        yield parts
