"""Decides that nobody names a trust over the network: whoever runs the server writes it into files, or says it there.

A setting of `types.trust` lets code of a model's files run. A registration, or a configuration that is sent along with
a load, is a client's: what of these it names is refused, unless the model's own files say the same.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from trivium.types.errors import Code, ServeError
from trivium.types.sources import ModelSource
from trivium.types.spec import ModelSpec
from trivium.types.trust import trusts_among

_CODE = re.compile(r"\.py(:\w+)?$")
_NONE = ("", "false", "0")
"""Values by which nothing is trusted."""


def check_source(source: ModelSource) -> None:
    """Raise FORBIDDEN for a source of a request whose settings name a trust, or which is a file of code itself."""
    if not source.is_named and _CODE.search(PurePath(re.split("[?#]", source.uri)[0]).name):
        raise ServeError(
            Code.FORBIDDEN,
            f"{source.uri[:200]} is a file of Python, which runs as it is read, and no request may name one: have "
            "whoever runs the server name it in the server's own command, or register the folder of a model.",
        )
    names = trusts_among(name for name, one in source.over.items() if one.value.strip().lower() not in _NONE)
    if names and not source.is_named:
        raise _refused(source.name or source.uri, names)


def check_sent(sent: Iterable[ModelSpec], own: Mapping[str, Mapping[str, str]]) -> None:
    """Raise FORBIDDEN where a model that was sent, or whose configuration was, has a trust that its own files do not
    have. `own` has the parameters of the versions in the model's own folder, by version; empty for a model whose files
    were sent.
    """
    for spec in sent:
        before = own.get(spec.version, {})
        given = {name: value for name, value in spec.parameters.items() if value.strip().lower() not in _NONE}
        names = [one for one in trusts_among(given) if given[one] != before.get(one)]
        if names:
            raise _refused(spec.name, names)


def _refused(model: str, names: Iterable[str]) -> ServeError:
    return ServeError(
        Code.FORBIDDEN,
        f"Model '{model[:200]}': a request names {', '.join(names)[:200]}, by which code in the model's files may run. "
        "No request may say so: have whoever runs the server write it into the model's own configuration, or into the "
        "server's, and leave it out of the request.",
    )
