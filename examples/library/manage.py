"""A server inside a program: it starts empty, and models come, grow, shrink and go while it serves."""

import asyncio
import json
from collections.abc import Callable

import trivium
from trivium.demo import classify, places

Say = Callable[[str], None]


def digit(answer: trivium.Tensors | trivium.Raw) -> str:
    """Name the digit that a model has seen: the one answers probabilities, the other JSON."""
    if isinstance(answer, trivium.Tensors):
        return str(answer["probabilities"].argmax())
    return str(json.loads(bytes(answer.parts[0].data))["digit"])


async def manage(server: trivium.Server, say: Say) -> None:
    """Register, run, scale, pin, look and unregister, on a server that holds nothing yet."""
    _, handler, _ = places.handlers()
    picture = places.pictures()[7]
    await server.register(places.bare_model(), name="digits")
    await server.register(places.bare_model(), name="digits", version="2")
    await server.register(handler, name="pictures")
    tensor = {"image": classify.to_tensor(picture)}
    say(f"tensors: {digit(await server.infer('digits', tensor))}")
    say(f"picture: {digit(await server.run('pictures', picture.read_bytes(), 'image/png'))}")

    await server.scale("pictures", 3)
    say(f"instances: {[one.name for one in server.describe('pictures').instances]}")
    await server.scale("pictures", 0)
    try:
        await server.run("pictures", picture.read_bytes(), "image/png")
    except trivium.ServeError as error:
        say(f"at zero: {error.code.value}, try again in {error.retry_after:g} s")
    await server.scale("pictures", 1)
    say(f"back: {digit(await server.run('pictures', picture.read_bytes(), 'image/png'))}")

    await server.set_default("digits", "1")
    say(f"default: version {server.describe('digits').default} of {server.describe('digits').versions}")
    say(f"requests: {server.statistics('pictures').success.count}")
    for status in server.list().versions:
        say(f"{status.model} {status.version}: {status.state.value}")
    await server.unregister("digits", "2")
    await server.unregister("pictures")
    say(f"left: {[(one.model, one.version) for one in server.list(ready=True).versions]}")


async def main() -> None:
    async with trivium.serving() as server:
        await manage(server, print)


if __name__ == "__main__":
    asyncio.run(main())
