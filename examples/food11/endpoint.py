"""What both FastAPI endpoints have in common: the documents, the route, and how a bad picture is refused."""

import base64
import binascii
from collections.abc import Callable

import numpy as np
from examples.food11.network import LABELS
from examples.food11.pictures import prepare, probabilities
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

Scores = Callable[[np.ndarray], np.ndarray]
"""FP32 [1, 3, 224, 224] to FP32 [1, 11]."""


class ImageRequest(BaseModel):
    """A picture file in base64."""

    image: str


class PredictionResponse(BaseModel):
    """The likeliest label, and how likely it is."""

    prediction: str
    probability: float = Field(..., ge=0, le=1)


def endpoint(title: str, scores: Scores) -> FastAPI:
    """`POST /predict`, and Swagger's page at `/docs`."""
    app = FastAPI(title=title, description="Tells which of eleven kinds of food a picture shows.")

    @app.post("/predict")
    def predict(request: ImageRequest) -> PredictionResponse:
        try:
            picture = prepare(base64.b64decode(request.image, validate=True))
        except (binascii.Error, OSError) as error:
            raise HTTPException(400, f"`image` is no picture file in base64: {error}.") from error
        chances = probabilities(scores(picture[None]))[0]
        best = int(chances.argmax())
        return PredictionResponse(prediction=LABELS[best], probability=float(chances[best]))

    return app
