"""A program that serves models by `trivium.asgi` under uvicorn: at one port alone, at a second below FastAPI.

`python -m tests.harness.asgi_program OPTIONS PATH...`, the options as JSON. It says where it listens, and ends by
SIGTERM. What FastAPI has of its own is `/own`; the models are below `/served models`.
"""

import asyncio
import json
import sys

import uvicorn
from fastapi import FastAPI

import trivium

MOUNTED = "/served models"


async def main(options: str, *paths: str) -> None:
    """Serve until one of the two is asked to stop."""
    models = trivium.asgi(*paths, **json.loads(options))
    around = FastAPI(lifespan=models.lifespan)

    @around.get("/own")
    async def own() -> dict[str, str]:
        return {"is": "FastAPI's"}

    around.mount(MOUNTED, models)
    servers = [
        uvicorn.Server(uvicorn.Config(each, port=0, log_level="info", access_log=False, lifespan="on"))
        for each in (models, around)
    ]
    ends = [asyncio.create_task(each.serve()) for each in servers]
    while not all(each.started or each.should_exit for each in servers):
        await asyncio.sleep(0.01)
        for end in ends:
            if end.done():
                end.result()
                return
    ports = [each.servers[0].sockets[0].getsockname()[1] for each in servers]
    print(f"alone on {ports[0]}, mounted on {ports[1]}", flush=True)
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for each in servers:
        each.should_exit = True
    await asyncio.gather(*ends)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
