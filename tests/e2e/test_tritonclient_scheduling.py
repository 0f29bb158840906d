"""NVIDIA's own client against models that keep state, and against an ensemble of them.

The stand-ins are those of the sheet's section 10.2: a direct model that adds one at the start of a sequence, and an
oldest one that adds the sequence's id at its end.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http as triton
from tests.harness.server_process import serve
from tritonclient.utils import InferenceServerException

MODEL = """
import numpy as np, triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", self.answer(r))]) for r in requests]
    def answer(self, request):
        told = lambda name: pb_utils.get_input_tensor_by_name(request, name)
        x = told("INPUT").as_numpy()
        if not told("READY").as_numpy().item():
            return x
        if told("END") is not None and told("END").as_numpy().item():
            x = x + told("CORRID").as_numpy().astype(np.int32)
        return x + told("START").as_numpy().astype(np.int32)
"""
ENDS = 'input { name: "INPUT" data_type: TYPE_INT32 dims: 1 } output { name: "OUTPUT" data_type: TYPE_INT32 dims: 1 }'


def control(name: str, kind: str, values: str = "int32_false_true: [ 0, 1 ]") -> str:
    return f'control_input {{ name: "{name}" control {{ kind: CONTROL_SEQUENCE_{kind} {values} }} }}\n'


START_READY = control("START", "START") + control("READY", "READY")
ID = control("END", "END") + control("CORRID", "CORRID", "data_type: TYPE_UINT64")
CONFIGS = {
    "simple_sequence": f"{START_READY} direct {{ }}",
    "simple_dyna_sequence": f"{START_READY}{ID} oldest {{ max_candidate_sequences: 4 }}",
}
WHOLE = f"""
platform: "ensemble" max_batch_size: 8 {ENDS}
ensemble_scheduling {{ step {{ model_name: "simple_sequence" model_version: -1
  input_map {{ key: "INPUT" value: "INPUT" }} output_map {{ key: "OUTPUT" value: "OUTPUT" }} }} }}
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[triton.InferenceServerClient]:
    root = tmp_path_factory.mktemp("models")
    for name, batching in CONFIGS.items():
        place(root, name, f'backend: "python" max_batch_size: 8 {ENDS}\nsequence_batching {{ {batching} }}')
        (root / name / "1" / "model.py").write_text(MODEL)
    place(root, "whole", WHOLE)
    with serve(tmp_path_factory.mktemp("log") / "log", root) as server:
        with triton.InferenceServerClient(
            server.address, network_timeout=120, connection_timeout=120
        ) as client:
            yield client


def place(root: Path, name: str, config: str) -> None:
    (root / name / "1").mkdir(parents=True)
    (root / name / "config.pbtxt").write_text(config)


def send(
    client: triton.InferenceServerClient, model: str, name: int | str, value: int, *, starts: bool, ends: bool
) -> int:
    tensor = triton.InferInput("INPUT", [1, 1], "INT32")
    tensor.set_data_from_numpy(np.array([[value]], np.int32))
    answer = client.infer(model, [tensor], sequence_id=name, sequence_start=starts, sequence_end=ends)
    return int(answer.as_numpy("OUTPUT").item())


VALUES = [11, 7, 5, 3, 2, 0, 1]


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("simple_sequence", (1000, 1001)),
        ("simple_sequence", ("a text", "another")),
        ("simple_dyna_sequence", (1002, 1003)),
        ("whole", (1004, 1005)),
    ],
)
def test_two_interleaved_sequences(
    client: triton.InferenceServerClient, model: str, names: tuple[int | str, int | str]
) -> None:
    last = len(VALUES) - 1
    came: dict[int, list[int]] = {1: [], -1: []}
    for i, value in enumerate(VALUES):
        for name, sign in zip(names, (1, -1), strict=True):
            came[sign].append(send(client, model, name, sign * value, starts=i == 0, ends=i == last))
    for name, sign in zip(names, (1, -1), strict=True):
        expected = [sign * value for value in VALUES]
        expected[0] += 1
        expected[-1] += int(name) if model == "simple_dyna_sequence" else 0
        assert came[sign] == expected


def test_a_sequence_that_has_not_begun_is_refused(client: triton.InferenceServerClient) -> None:
    with pytest.raises(InferenceServerException, match="the sequence 7 has not begun") as caught:
        send(client, "simple_sequence", 7, 1, starts=False, ends=False)
    assert caught.value.status() == "400"


def test_what_clients_read_of_them(client: triton.InferenceServerClient) -> None:
    assert [each["name"] for each in client.get_model_metadata("simple_sequence")["inputs"]] == ["INPUT"]
    batching = client.get_model_config("simple_dyna_sequence")["sequence_batching"]
    assert batching["oldest"]["max_candidate_sequences"] == 4
    assert client.get_model_metadata("whole")["platform"] == "ensemble"
    (step,) = client.get_model_config("whole")["ensemble_scheduling"]["step"]
    assert (step["model_name"], step["model_version"]) == ("simple_sequence", -1)


def test_an_ensemble_and_its_member_count_each_for_themselves(client: triton.InferenceServerClient) -> None:
    def counts() -> list[int]:
        names = ("whole", "simple_sequence")
        return [client.get_inference_statistics(name)["model_stats"][0]["inference_count"] for name in names]

    before = counts()
    assert send(client, "whole", 7, 5, starts=True, ends=True) == 6
    assert counts() == [count + 1 for count in before]
