"""The table of options: groups, names in each source, and that each says what it is for."""

import re

import pytest

from trivium.catalogue import CATALOGUE
from trivium.config.options import HttpConfig, ServerConfig
from trivium.settings.option import Option

SCHEMA = CATALOGUE.schema
EACH = pytest.mark.parametrize("option", SCHEMA.options.values(), ids=SCHEMA.options)
PREFIXES = {"tracing": "trace_", "models": "model_", "workers": "worker_"}
"""Groups whose options do not begin with the group's own name."""


def test_groups():
    assert list(SCHEMA.groups) == [
        "server",
        "http",
        "grpc",
        "management",
        "metrics",
        "tracing",
        "models",
        "workers",
        "security",
        "djl",
        "torchserve",
    ]
    assert sum(map(len, SCHEMA.keys.values())) == len(SCHEMA.options)


@EACH
def test_an_option_is_a_field_of_its_group(option: Option):
    value = SCHEMA.value(ServerConfig(), option.name)
    assert value == option.default
    assert type(value) is option.type


@EACH
def test_a_key_is_the_flags_name_without_the_groups_prefix(option: Option):
    assert option.key == option.name.removeprefix(PREFIXES.get(option.group, f"{option.group}_"))


@EACH
def test_an_option_says_what_it_is_for_and_its_default_fits(option: Option):
    assert re.fullmatch(r"--[a-z]+(-[a-z]+)*", option.flag)
    assert option.help.endswith(".")
    assert option.kind.read(option.default) == option.default
    assert not (option.type is bool and option.default), "a flag can only switch on"


def test_no_name_of_an_option_is_a_group():
    assert not SCHEMA.options.keys() & SCHEMA.groups.keys()


def test_what_most_people_need_is_common():
    common = {option.flag for option in SCHEMA.options.values() if option.is_common}
    assert {"--http-port", "--grpc-port", "--host", "--open", "--keys", "--profile", "--log-level"} < common
    assert len(common) <= 20


def test_names():
    port = SCHEMA.options["http_port"]
    assert (port.flag, port.variable, port.place) == ("--http-port", "TRIVIUM_HTTP_PORT", "port in [http]")
    assert ServerConfig(http=HttpConfig(port=0)).http.port == 0
