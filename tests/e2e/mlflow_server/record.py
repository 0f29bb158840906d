"""Has MLflow write its folders and serve them, and records what it answers: `make mlflow`.

Runs in an environment of its own, with MLflow and without Trivium. What it writes lies in tests/fixtures/mlflow: the
folders as MLflow wrote them, and `answers.json`, which `test_mlflow_server` holds ours against.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any
from urllib import error, request

HERE = Path(__file__).parents[2] / "fixtures" / "mlflow"
SECONDS = 120
KEPT = ("MLmodel", "model.skops", "model.ubj", "model.lgb", "model.onnx")
JSON, CSV = "application/json", "text/csv"


def _write() -> dict[str, Any]:
    """Save a model of each flavor; returns the table of their rows."""
    import lightgbm
    import mlflow
    import numpy as np
    import onnx
    import xgboost
    from mlflow.models import infer_signature
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    table = load_iris(as_frame=True)
    rows, wanted = table.data, table.target
    linear = LogisticRegression(max_iter=500).fit(rows, wanted)
    signature = infer_signature(rows, linear.predict(rows))
    mlflow.sklearn.save_model(linear, HERE / "sklearn", signature=signature, serialization_format="skops")
    trees = xgboost.XGBClassifier(n_estimators=3, max_depth=2).fit(rows.to_numpy(np.float32), wanted)
    mlflow.xgboost.save_model(trees, HERE / "xgboost")
    booster = lightgbm.train({"verbosity": -1, "num_leaves": 4}, lightgbm.Dataset(rows, wanted), 3)
    mlflow.lightgbm.save_model(booster, HERE / "lightgbm", signature=signature)
    helper, kind = onnx.helper, onnx.TensorProto
    weights = onnx.numpy_helper.from_array(linear.coef_.T.astype(np.float32), "weights")
    bias = onnx.numpy_helper.from_array(linear.intercept_.astype(np.float32), "bias")
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "weights", "bias"], ["logits"]),
            helper.make_node("Softmax", ["logits"], ["scores"]),
        ],
        "iris",
        [helper.make_tensor_value_info("x", kind.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("scores", kind.FLOAT, ["n", 3])],
        [weights, bias],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    scores = {"scores": np.zeros((3, 3), np.float32)}
    told = infer_signature({"x": rows.to_numpy(np.float32)[:3]}, scores)
    mlflow.onnx.save_model(made, HERE / "onnx", signature=told)
    return {"columns": list(rows.columns), "rows": rows.iloc[[0, 60, 140]].to_numpy().tolist()}


def bodies(columns: list[str], rows: list[list[float]]) -> list[tuple[str, str, str]]:
    """Return ten requests for a model of columns: what each is, its content type and its body."""
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    turned = [list(reversed(row)) for row in rows]
    lines = "\n".join(",".join(map(str, row)) for row in (columns, *rows))

    def of(name: str, document: object) -> tuple[str, str, str]:
        return name, JSON, json.dumps(document)

    by_column = {name: [row[at] for row in rows] for at, name in enumerate(columns)}
    return [
        of("split", {"dataframe_split": {"columns": columns, "data": rows}}),
        of("split in another order", {"dataframe_split": {"columns": columns[::-1], "data": turned}}),
        of("records", {"dataframe_records": records}),
        of("inputs by column", {"inputs": by_column}),
        of("instances by row", {"instances": records}),
        ("csv", CSV, lines),
        of(
            "a column lacks", {"dataframe_split": {"columns": columns[:3], "data": [row[:3] for row in rows]}}
        ),
        of("two forms", {"dataframe_records": records, "instances": rows}),
        ("no json", JSON, "{"),
        of("bare rows", rows),
    ]


def of_arrays(name: str, rows: list[list[float]], columns: list[str]) -> list[tuple[str, str, str]]:
    """Return ten requests for a model without a signature, or of one tensor of this name."""
    lines = "\n".join(",".join(map(str, row)) for row in (columns, *rows))
    listed: object = {name: rows} if name else rows
    instances: object = [{name: row} for row in rows] if name else rows
    made = [
        ("inputs", JSON, {"inputs": listed}),
        ("instances", JSON, {"instances": instances}),
        ("one row", JSON, {"inputs": {name: rows[:1]} if name else rows[:1]}),
        ("with params", JSON, {"inputs": listed, "params": {"a": 1}}),
        ("two forms", JSON, {"inputs": listed, "instances": instances}),
        ("no form", JSON, {"data": rows}),
        ("params that are no object", JSON, {"inputs": listed, "params": 3}),
        ("no json", JSON, "["),
        ("another content type", "text/plain", "5.1"),
    ]
    found = [(one, kind, body if isinstance(body, str) else json.dumps(body)) for one, kind, body in made]
    if name:
        return [
            *found,
            ("inputs of too few columns", JSON, json.dumps({"inputs": {name: [row[:3] for row in rows]}})),
        ]
    return [*found, ("csv", CSV, lines)]


def _asked(url: str, kind: str, body: str) -> tuple[int, str]:
    sent = request.Request(url, body.encode(), {"Content-Type": kind})
    try:
        with request.urlopen(sent, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except error.HTTPError as refused:
        return refused.code, refused.read().decode()


def _recorded(folder: Path, asked: list[tuple[str, str, str]]) -> list[dict[str, object]]:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", str(folder), "-p", str(port)]
    words = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    served = subprocess.Popen(
        [*command, "--env-manager", "local", "-w", "1"], env=words, start_new_session=True
    )
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + SECONDS
        while True:
            try:
                with request.urlopen(f"{url}/ping", timeout=5):
                    break
            except OSError:
                if time.monotonic() > until or served.poll() is not None:
                    raise
                time.sleep(0.5)
        answers = []
        for name, kind, body in asked:
            status, text = _asked(f"{url}/invocations", kind, body)
            answers.append({"name": name, "kind": kind, "body": body, "status": status, "answer": text})
        return answers
    finally:
        os.killpg(served.pid, 15)
        served.wait()


def main() -> None:
    """Write the folders and the answers anew."""
    warnings.simplefilter("ignore")
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir(parents=True)
    table = _write()
    rows, columns = table["rows"], table["columns"]
    asked = {
        "sklearn": bodies(columns, rows),
        "lightgbm": bodies(columns, rows),
        "xgboost": of_arrays("", rows, columns),
        "onnx": of_arrays("x", rows, columns),
    }
    found = {name: _recorded(HERE / name, requests) for name, requests in asked.items()}
    for path in sorted(HERE.rglob("*"), reverse=True):
        if path.is_file() and path.name not in KEPT:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    (HERE / "answers.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
