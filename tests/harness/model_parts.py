"""Keeps the parts that a served model is made of, for tests that drive one of them by hand."""

from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from unittest.mock import patch

from trivium.core.models import served_model


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
        for name, attribute in (("pool", "Pool"), ("queue", "RequestQueue"), ("scaler", "Scaler")):
            make = keep(name, getattr(served_model, attribute))
            stack.enter_context(patch.object(served_model, attribute, make))
        stack.enter_context(patch.object(served_model, "answering", answered))
        yield parts
