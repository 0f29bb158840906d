"""The model, served inside this program, without a port."""

import asyncio

import numpy as np

import trivium


async def digit_of(image: np.ndarray) -> int:
    async with trivium.serving("models/digits.onnx") as server:
        answer = await server.infer("digits", {"image": image})
    return int(answer["probabilities"].argmax())


def test_a_picture_has_a_digit() -> None:
    assert 0 <= asyncio.run(digit_of(np.zeros((1, 1, 8, 8), np.float32))) <= 9
