"""Small projects that run as they stand: a model or handler, a test, a README, a Dockerfile; one for each template.

The files of a template lie in `templates`, under the names that they get; what all projects share is made here.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trivium.demo import places

HOME = Path(__file__).parent / "templates"
_LLM = "HuggingFaceTB/SmolLM2-135M-Instruct"


@dataclass(frozen=True, slots=True)
class ProjectTemplate:
    """One kind of project. `serves` is what `trivium serve` gets, `route` and `body` what the README asks, `extra` what
    it needs of the package; `about` says what it is.
    """

    about: str
    serves: str
    route: str
    body: object
    extra: str = ""


def _v2(name: str, shape: Sequence[int], datatype: str, data: Sequence[object]) -> dict[str, object]:
    return {"inputs": [{"name": name, "shape": shape, "datatype": datatype, "data": data}]}


_TEXT = {"text": "to be or not"}
TEMPLATES: Mapping[str, ProjectTemplate] = {
    "handler": ProjectTemplate(
        "a typed Python class", "models/sentiment", "predictions/sentiment", {"text": "I love it", "top_k": 1}
    ),
    "onnx": ProjectTemplate(
        "an ONNX file",
        "models/digits.onnx",
        "v2/models/digits/infer",
        _v2("image", [1, 1, 8, 8], "FP32", [0] * 64),
    ),
    "triton-python": ProjectTemplate(
        "a model of Triton's Python backend",
        "models/words",
        "v2/models/words/infer",
        _v2("text", [1, 1], "BYTES", ["to be or not"]),
    ),
    "djl": ProjectTemplate("a handler of DJL Serving", "models/words", "predictions/words", _TEXT),
    "torchserve": ProjectTemplate("a handler of TorchServe", "models/words", "predictions/words", _TEXT),
    "llm": ProjectTemplate(
        "a language model by its name",
        _LLM,
        "v1/completions",
        {"model": _LLM.partition("/")[2], "prompt": "The capital of France is", "max_tokens": 8},
        extra="[llm,hub]",
    ),
}


def write_project(folder: Path, name: str) -> list[Path]:
    """Write a project of a template into an empty folder, or one that is not there. Returns its files, relative to it.
    Raises FileExistsError for a folder with something in it, and OSError.
    """
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(17, "it is not empty", str(folder))
    template = TEMPLATES[name]
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(HOME / name, folder, dirs_exist_ok=True, ignore=ignored)
    if name == "onnx":
        (folder / "models").mkdir()
        shutil.copy(places.bare_model(), folder / template.serves)
    title = folder.resolve().name
    (folder / "README.md").write_text(_readme(title, template))
    (folder / "Dockerfile").write_text(_dockerfile(template))
    (folder / ".dockerignore").write_text(".git\n.venv\n__pycache__\n.pytest_cache\n*.log\n")
    return sorted(one.relative_to(folder) for one in folder.rglob("*") if one.is_file())


def _readme(title: str, template: ProjectTemplate) -> str:
    body = json.dumps(template.body)
    return f"""# {title}

Serves {template.about} with Trivium.

```console
$ pip install {_package(template)} pytest
$ pytest
$ trivium serve {template.serves}
$ curl -s http://127.0.0.1:8080/{template.route} -H 'Content-Type: application/json' -d '{body}'
```

`trivium check {template.serves}` says how it is served and why. The last line is for another terminal.
"""


def _dockerfile(template: ProjectTemplate) -> str:
    copied = "COPY models models\n" if template.serves.startswith("models/") else ""
    return f"""FROM python:3.12-slim
RUN useradd --create-home serving
WORKDIR /home/serving
RUN pip install --no-cache-dir {_package(template)}
{copied}USER serving
EXPOSE 8080 8001
# --open serves whoever reaches the container. Serve those alone who have a key by --keys FILE (trivium key makes one).
CMD ["trivium", "serve", "{template.serves}", "--host", "0.0.0.0", "--open"]
"""


def _package(template: ProjectTemplate) -> str:
    return f"'trivium{template.extra}'" if template.extra else "trivium"
