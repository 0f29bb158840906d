"""What the composition root finds out about the machine."""

import asyncio

import pytest

from trivium.app import build
from trivium.catalogue import CATALOGUE, configured
from trivium.devices import count_gpus
from trivium.types.errors import Code, ServeError


def test_gpus_are_counted_by_their_device_files(tmp_path):
    assert count_gpus(tmp_path) == 0
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert count_gpus(tmp_path) == 2


@pytest.mark.parametrize("name", ["a/b", "../x", ".hidden", "with space"])
def test_a_configuration_is_preferred_by_a_plain_name(name):
    async def scene():
        build(CATALOGUE, configured(model_config_name=name))

    with pytest.raises(ServeError, match="--model-config-name") as caught:
        asyncio.run(scene())
    assert caught.value.code is Code.INVALID


def test_quantiles_that_are_none_are_refused_at_the_start():
    async def scene():
        build(CATALOGUE, configured(metrics_quantiles="0.5,two"))

    with pytest.raises(ServeError, match="is no quantile"):
        asyncio.run(scene())


def test_parameters_of_an_engine_that_there_is_not_are_refused():
    async def scene():
        build(CATALOGUE, configured(engine_parameters="hff.slots=8"))

    with pytest.raises(ServeError, match="there is no engine 'hff'") as caught:
        asyncio.run(scene())
    assert caught.value.code is Code.INVALID
