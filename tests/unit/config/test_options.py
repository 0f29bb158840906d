"""The table of options: groups, names in each source, and that each says what it is for."""

import re
from dataclasses import fields, is_dataclass
from operator import attrgetter

import pytest

from trivium.config.option import Option
from trivium.config.options import GROUPS, KEYS, OPTIONS, HttpConfig, ServerConfig

EACH = pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS)
PREFIXES = {"tracing": "trace_", "models": "model_", "workers": "worker_"}
"""Groups whose options do not begin with the group's own name."""


def test_groups():
    assert list(GROUPS) == [
        "server",
        "http",
        "grpc",
        "management",
        "metrics",
        "tracing",
        "models",
        "workers",
        "djl",
        "torchserve",
        "security",
    ]
    assert all(is_dataclass(getattr(ServerConfig(), name)) for name in GROUPS)
    assert (
        sum(map(len, KEYS.values()))
        == len(OPTIONS)
        == sum(len(fields(each.type)) for each in fields(ServerConfig))
    )


@EACH
def test_an_option_is_a_field_of_its_group(option: Option):
    assert attrgetter(f"{option.group}.{option.key}")(ServerConfig()) == option.default
    (there,) = (each for each in fields(getattr(ServerConfig(), option.group)) if each.name == option.key)
    assert there.type is option.kind


@EACH
def test_a_key_is_the_flags_name_without_the_groups_prefix(option: Option):
    assert option.key == option.name.removeprefix(PREFIXES.get(option.group, f"{option.group}_"))


@EACH
def test_an_option_says_what_it_is_for_and_its_default_fits(option: Option):
    assert re.fullmatch(r"--[a-z]+(-[a-z]+)*", option.flag)
    assert option.help.endswith(".")
    assert option.parse(option.default) == option.default
    assert not (option.kind is bool and option.default), "a flag can only switch on"


def test_no_name_of_an_option_is_a_group():
    assert not OPTIONS.keys() & GROUPS.keys()


def test_what_most_people_need_is_common():
    common = {option.flag for option in OPTIONS.values() if option.is_common}
    assert common == {"--http-port", "--grpc-port", "--host", "--open", "--keys", "--profile", "--log-level"}


def test_names():
    port = OPTIONS["http_port"]
    assert (port.flag, port.variable, port.place) == ("--http-port", "TRIVIUM_HTTP_PORT", "port in [http]")
    assert ServerConfig(http=HttpConfig(port=0)).http.port == 0
