"""Models of TensorFlow for tests: digits from an MLP, words from a table, and some that do what they should not.

They are made, and asked, in a process of their own: TensorFlow and other libraries do not bear each other in one.
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from tests.harness.digit_networks import network
from tests.harness.virtual_models import make_spec

from trivium.catalogue import CATALOGUE
from trivium.core.execution import execute
from trivium.types.errors import ServeError
from trivium.types.operations import Infer
from trivium.types.payload import Tensors
from trivium.types.running import Batch, Placement
from trivium.types.spec import Batching, Isolation, ModelSpec

HERE = Placement("m_0", Isolation.THREAD)
ROWS = Batching(batch_axis=True, max_rows=64, merge=True)
WORDS = ("ant", "bee", "cat")
ALONE = "TRIVIUM_TEST_TENSORFLOW"
"""Set where a test's process has TensorFlow, and no other library that it does not bear."""


@contextmanager
def process() -> Iterator[Callable[..., Any]]:
    """A process with TensorFlow: call it with a function of this module and its arguments."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        yield lambda function, *given, **named: pool.submit(function, *given, **named).result(300)


def weights() -> tuple[list[Any], list[Any]]:
    """Return the weights and biases of the network of digits that all engines' files have."""
    made = network()
    return [one.astype(np.float32) for one in made.coefs_], [
        one.astype(np.float32) for one in made.intercepts_
    ]


def library() -> Any:
    import tensorflow

    return tensorflow


def save_digits(folder: Path, **options: Any) -> None:
    """Write the MLP as a SavedModel whose signature has pixels and scores, and digits."""
    tf = library()
    coefs, intercepts = weights()

    class Digits(tf.Module):
        def __init__(self) -> None:
            self.coefs, self.intercepts = (list(map(tf.Variable, one)) for one in (coefs, intercepts))

        @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32, name="pixels")])
        def ask(self, pixels: Any) -> dict[str, Any]:
            hidden = tf.nn.relu(pixels / 16 @ self.coefs[0] + self.intercepts[0])
            scores = tf.nn.softmax(hidden @ self.coefs[1] + self.intercepts[1])
            return {"scores": scores, "digit": tf.argmax(scores, axis=1)}

        @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32, name="pixels")])
        def darken(self, pixels: Any) -> dict[str, Any]:
            return {"dark": pixels * 2}

    model = Digits()
    names = options.get("signatures", {"serving_default": "ask", "darken": "darken"})
    signatures = {name: getattr(model, of) for name, of in names.items()}
    tf.saved_model.save(model, str(folder), signatures=signatures)


def save_identity(folder: Path) -> None:
    """Write a model that gives back its two columns."""
    tf = library()

    class Identity(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
        def ask(self, x: Any) -> dict[str, Any]:
            return {"y": tf.identity(x)}

    model = Identity()
    tf.saved_model.save(model, str(folder), signatures={"serving_default": model.ask})


def save_graph(file: Path) -> None:
    """Write the MLP as a frozen graph from pixels to scores."""
    tf = library()
    coefs, intercepts = weights()
    with tf.Graph().as_default() as graph:
        pixels = tf.compat.v1.placeholder(tf.float32, [None, 64], name="pixels")
        hidden = tf.nn.relu(pixels / 16 @ coefs[0] + intercepts[0], name="hidden")
        tf.nn.softmax(hidden @ coefs[1] + intercepts[1], name="scores")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(graph.as_graph_def().SerializeToString())


def save_words(folder: Path) -> None:
    """Write a model of strings, with a table filled from a file of the SavedModel."""
    tf = library()
    folder.mkdir(parents=True)
    vocabulary = folder.parent / f"{folder.name}-words.txt"
    vocabulary.write_text("\n".join(WORDS))

    class Words(tf.Module):
        def __init__(self) -> None:
            whole, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
            rows = tf.lookup.TextFileInitializer(str(vocabulary), tf.string, whole, tf.int64, number)
            self.table = tf.lookup.StaticHashTable(rows, -1)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
        def ask(self, words: Any) -> dict[str, Any]:
            return {"place": self.table.lookup(words), "loud": tf.strings.upper(words)}

    model = Words()
    tf.saved_model.save(model, str(folder), signatures={"serving_default": model.ask})
    vocabulary.unlink()


def save_other(folder: Path, kind: str, place: str = "") -> None:
    """Write a model that does what its kind says, with the place that it reaches for."""
    tf = library()

    class Other(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
        def ask(self, x: Any) -> dict[str, Any]:
            if kind == "write":
                tf.io.write_file(place, "here")
            elif kind == "print":
                tf.print("here", output_stream=f"file://{place}")
            elif kind == "read":
                return {"y": x, "text": tf.io.read_file(place)}
            elif kind == "save":
                names = {"tensor_names": ["x"], "shape_and_slices": [""]}
                with tf.control_dependencies([tf.raw_ops.SaveV2(prefix=place, tensors=[x], **names)]):
                    return {"y": x + 1}
            elif kind == "code":
                return {"y": tf.py_function(lambda one: one, [x], tf.float32)}
            return {"y": x + 1}

    model = Other()
    tf.saved_model.save(model, str(folder), signatures={"serving_default": model.ask})


def save_hostile_start(folder: Path, place: str) -> None:
    """Write a model that writes a file as it is initialised."""
    tf = library()
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None], name="x")
        start = tf.io.write_file(place, "here")
        builder = v1.saved_model.Builder(str(folder))
        info = {"x": v1.saved_model.build_tensor_info(x)}
        signature = v1.saved_model.build_signature_def(info, {"y": v1.saved_model.build_tensor_info(x + 1)})
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"serving_default": signature}, main_op=start
        )
        builder.save()


def save_old(folder: Path) -> None:
    """Write a model as TensorFlow 1 did: a variable, a table that an operation fills, its own tags and signature."""
    tf = library()
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        weight = v1.get_variable("w", initializer=[[2.0], [3.0]], use_resource=False)
        rows = tf.lookup.KeyValueTensorInitializer(tf.constant([5], tf.int64), tf.constant(["five"]))
        table = tf.lookup.StaticHashTable(rows, "other")
        y = tf.matmul(x, weight)
        words = table.lookup(tf.cast(tf.reshape(y, [-1]), tf.int64))
        session.run(v1.global_variables_initializer())
        told = {"x": x}, {"y": y, "words": words}
        infos = [{name: v1.saved_model.build_tensor_info(one) for name, one in side.items()} for side in told]
        signature = v1.saved_model.build_signature_def(*infos)
        builder = v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            session, ["old"], {"default": signature}, main_op=v1.tables_initializer()
        )
        builder.save()


def save_unfrozen(file: Path) -> None:
    """Write a graph whose variable an operation called `init` gives its value, and whose middle has a name."""
    tf = library()
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None], name="x")
        v1.placeholder_with_default(False, [], name="training")
        v1.placeholder(tf.float32, [], name="unused")
        weight = v1.get_variable("w", initializer=4.0, use_resource=True)
        tf.add(tf.multiply(x, weight, name="middle"), 1, name="y")
        tf.group(v1.global_variables_initializer(), name="init")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(graph.as_graph_def().SerializeToString())


def save_shapes(folder: Path, rank: int | None = 1) -> None:
    """Write a model of bfloat16 and of an output whose number of dimensions nothing tells."""
    tf = library()

    class Shapes(tf.Module):
        @tf.function(
            input_signature=[tf.TensorSpec(None if rank is None else [None] * rank, tf.bfloat16, name="x")]
        )
        def ask(self, x: Any) -> dict[str, Any]:
            wide = tf.compat.v1.placeholder_with_default(tf.expand_dims(x, -1), None)
            return {"twice": x * 2, "wide": wide}

    model = Shapes()
    tf.saved_model.save(model, str(folder), signatures={"serving_default": model.ask})


def save_keras(folder: Path) -> None:
    """Write what Keras' own `export` does."""
    import keras

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="scores")])
    model.export(str(folder), verbose=False)


def own_answers(folder: Path, signature: str = "serving_default", **inputs: Any) -> dict[str, Any]:
    """Return what TensorFlow itself answers."""
    tf = library()
    model = tf.saved_model.load(str(folder))
    found = model.signatures[signature](**{name: tf.constant(one) for name, one in inputs.items()})
    return {name: one.numpy() for name, one in found.items()}


def spec_of(path: Path, batching: Batching = ROWS, **parameters: str) -> ModelSpec:
    """Return a spec of a model, completed by what the engine says of it."""
    bare = replace(
        make_spec(batching, inputs=(), outputs=()),
        root=path.parent,
        entry=path.name,
        engine="tensorflow",
        parameters=parameters,
    )
    facts = CATALOGUE.engines["tensorflow"].facts(bare)
    first = 1 if batching.batch_axis else 0
    inputs, outputs = (
        tuple(replace(one, dims=one.dims[first:]) for one in side) for side in (facts.inputs, facts.outputs)
    )
    return replace(bare, inputs=inputs, outputs=outputs)


def answers(spec: ModelSpec, *items: dict[str, Any]) -> list[Any]:
    """Return the outcome of each item of a batch: its arrays by name, or the error's code and message."""
    runner = CATALOGUE.engines["tensorflow"].open(spec, HERE)  # type: ignore[attr-defined]
    operations = [Infer(model="m", payload=Tensors.of(one)) for one in items]
    sizes = [len(next(iter(one.values()))) for one in items]
    try:
        outcomes = execute(runner, Batch(list(range(len(items))), operations, sizes)).outcomes
        return [
            (one.code, one.message)
            if isinstance(one, ServeError)
            else {tensor.name: tensor.array for tensor in one.items}
            for one in outcomes
        ]
    finally:
        runner.close()


def refusal(path: Path, **parameters: str) -> tuple[str, str]:
    """Return the code and the words with which a model is refused; empty where it is not."""
    try:
        spec_of(path, **parameters)
    except ServeError as error:
        return error.code.name, error.message
    return "", ""


def main() -> None:
    """Write the models of digits and words into a folder, for tests that serve them."""
    place = Path(sys.argv[1])
    save_digits(place / "digits")
    save_graph(place / "digits.graphdef")
    save_words(place / "words")


if __name__ == "__main__":
    main()
