"""The graph of an OpenVINO model: what it says of inputs, states and logits, and what is none."""

import pytest

from trivium.engines.hf.genai.graph_file import GraphFacts, GraphFault, read_graph

INPUT = '<layer id="{}" name="{}" type="Parameter" version="opset1"><data shape="?,?"/></layer>'
STATE = '<layer id="7" name="s" type="ReadValue"><data variable_id="v" variable_shape="{}"/></layer>'
RESULT = (
    '<layer id="9" name="{}" type="Result"{}><input><port id="0"><dim>-1</dim><dim>-1</dim><dim>{}</dim></port>'
    "</input></layer>"
)


def graph(*layers: str) -> bytes:
    return f'<?xml version="1.0"?><net name="m"><layers>{"".join(layers)}</layers></net>'.encode()


IDS = INPUT.format(0, "input_ids")


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (
            graph(IDS, STATE.format("?,2,?,16"), STATE.format("?,2,?,16"), RESULT.format("logits", "", 768)),
            GraphFacts(frozenset({"input_ids"}), 2, 64, 768),
        ),
        (
            graph(IDS, RESULT.format("Result_7", ' output_names="logits"', 9)),
            GraphFacts(frozenset({"input_ids"}), 0, 0, 9),
        ),
        (graph(RESULT.format("hidden", "", 64)), GraphFacts(frozenset(), 0, 0, 0)),
        (graph(RESULT.format("logits", "", -1)), GraphFacts(frozenset(), 0, 0, 0)),
        (graph(STATE.format("")), GraphFacts(frozenset(), 1, 0, 0)),
        (graph(STATE.format("?,?,?")), GraphFacts(frozenset(), 1, 0, 0)),
        (graph(STATE.format("1,99999999999999,4")), GraphFacts(frozenset(), 1, 4, 0)),
        (graph(INPUT.format(0, "inputs_embeds")), GraphFacts(frozenset({"inputs_embeds"}), 0, 0, 0)),
    ],
)
def test_it_says_inputs_states_and_logits(data, facts):
    assert read_graph(data) == facts


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no XML"),
        (b"\0" * 100, "no XML"),
        (graph(IDS)[:-20], "no XML"),
        (b"<other/>", "outermost element is 'other'"),
        (b'<!DOCTYPE net [<!ENTITY a "aaaa">]><net>&a;</net>', "document type"),
    ],
)
def test_what_is_none_is_told(data, words):
    with pytest.raises(GraphFault, match=words):
        read_graph(data)
