"""The example of the library under load: while models come, grow, shrink and go, every request is answered."""

import asyncio
import re
from collections import Counter
from pathlib import Path

from examples.library import workload
from examples.library.manage import manage

import trivium
from trivium.demo import classify, places
from trivium.types.errors import Code

BYSTANDER = "bystander"


async def _load(server: trivium.Server, model: str, seen: Counter[object], stop: asyncio.Event) -> None:
    """Ask one after the other until told to stop; every answer is counted, refusals by their code."""
    image = {"image": classify.to_tensor(places.pictures()[3])}
    picture = places.pictures()[3].read_bytes()
    while not stop.is_set():
        try:
            if model == "pictures":
                answer = await server.run(model, picture, "image/png")
                seen[b'"digit":3' in bytes(answer.parts[0].data)] += 1
            else:
                seen[int((await server.infer(model, image))["probabilities"].argmax()) == 3] += 1
        except trivium.ServeError as error:
            seen[error.code] += 1
            await asyncio.sleep(0.001)


def test_every_request_is_answered_while_models_are_managed() -> None:
    said: list[str] = []
    seen = {model: Counter[object]() for model in (BYSTANDER, "digits", "pictures")}

    async def scene() -> None:
        stop = asyncio.Event()
        async with trivium.serving() as server:
            await server.register(places.bare_model(), name=BYSTANDER)
            asking = [
                asyncio.ensure_future(_load(server, model, seen[model], stop))
                for model in seen
                for _ in range(4)
            ]
            await manage(server, said.append)
            stop.set()
            await asyncio.gather(*asking)
            assert server.statistics(BYSTANDER).success.count == seen[BYSTANDER][True]

    asyncio.run(scene())
    assert set(seen[BYSTANDER]) == {True}, "whoever is not managed notices nothing"
    assert set(seen["digits"]) <= {True, Code.NOT_FOUND, Code.NOT_READY}
    assert set(seen["pictures"]) <= {True, Code.NOT_FOUND, Code.NOT_READY}
    assert seen["digits"][True] > 0
    assert seen["pictures"][True] > 0
    assert said[:2] == ["tensors: 7", "picture: 7"]
    assert len(re.findall(r"_\d'", said[2])) == 3
    assert said[3:5] == ["at zero: not ready, try again in 1 s", "back: 7"]
    assert "default: version 1 of ('1', '2')" in said
    assert said[-1] == f"left: [('{BYSTANDER}', '1'), ('digits', '1')]"


def test_it_has_at_most_sixty_lines() -> None:
    import examples.library.manage as example

    with open(example.__file__) as file:
        assert sum(1 for _ in file) <= 60


def test_a_djl_model_is_worked_with_inside_a_program(tmp_path: Path) -> None:
    said: list[str] = []

    async def scene() -> None:
        async with trivium.serving() as server:
            await workload.work(server, workload.folder(tmp_path), said.append)

    asyncio.run(scene())
    assert said == [
        "body: abab",
        "tensors: [2.0, 4.0]",
        "workers: 2 to 4",
        "requests: 2, failures: 0, waiting: 0",
        "left: []",
    ]
