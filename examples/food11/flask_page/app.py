"""A page that uploads a picture and shows what food it is: `flask --app examples.food11.flask_page.app run`.

TRITON_SERVER_URL says where the models are served (host and port), FOOD11_MODEL_NAME which one is asked:
`food_classifier` gets the file as it is, `food_classifier_onnx` the numbers, prepared here.
"""

import os
from pathlib import Path

import numpy as np
import tritonclient.http as client
from examples.food11.network import LABELS
from examples.food11.pictures import as_text, prepare, probabilities, sample
from flask import Flask, render_template, request
from tritonclient.utils import InferenceServerException

app = Flask(__name__, template_folder=str(Path(__file__).parent / "templates"))
app.config["MAX_CONTENT_LENGTH"] = 16 * 2**20


@app.get("/")
def page() -> str:
    """The form."""
    return render_template("index.html", model=model_name())


@app.post("/predict")
def predict() -> tuple[str, int]:
    """The form again, with the label of the file that was sent."""
    file = request.files.get("file")
    if file is None or not file.filename:
        return render_template("index.html", model=model_name(), error="Choose a picture first."), 400
    return shown(file.read())


@app.get("/test")
def test() -> tuple[str, int]:
    """Asks for a made-up picture: does the whole way work?"""
    return shown(sample())


def shown(data: bytes) -> tuple[str, int]:
    """The page for a picture."""
    try:
        label, chance = classify(data)
    except OSError as error:
        return render_template(
            "index.html", model=model_name(), error=f"No picture, or no server: {error}"
        ), 400
    except InferenceServerException as error:
        return render_template("index.html", model=model_name(), error=f"The server refused: {error}"), 502
    return render_template("index.html", model=model_name(), label=label, chance=chance), 200


def classify(data: bytes) -> tuple[str, float]:
    """Label and probability, with the preparation on whichever side the model leaves it to."""
    if model_name().endswith("_onnx"):
        return prepared_here(data)
    return prepared_there(data)


def prepared_there(data: bytes) -> tuple[str, float]:
    """The server takes the picture file."""
    texts = client.InferInput("INPUT_IMAGE", [1, 1], "BYTES")
    texts.set_data_from_numpy(np.array([[as_text(data)]], dtype=object))
    with client.InferenceServerClient(server()) as triton:
        answer = triton.infer("food_classifier", [texts])
    (label,), (chance,) = answer.as_numpy("FOOD_LABEL")[0], answer.as_numpy("PROBABILITY")[0]
    return label.decode(), float(chance)


def prepared_here(data: bytes) -> tuple[str, float]:
    """The server takes the network's input."""
    picture = prepare(data)[None]
    values = client.InferInput("input", list(picture.shape), "FP32")
    values.set_data_from_numpy(picture)
    with client.InferenceServerClient(server()) as triton:
        chances = probabilities(triton.infer("food_classifier_onnx", [values]).as_numpy("output"))[0]
    return LABELS[int(chances.argmax())], float(chances.max())


def server() -> str:
    """Host and port."""
    return os.environ.get("TRITON_SERVER_URL", "localhost:8000")


def model_name() -> str:
    """Of the model that is asked."""
    return os.environ.get("FOOD11_MODEL_NAME", "food_classifier")
