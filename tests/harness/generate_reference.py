"""What `generate` of transformers answers, and how the answers of steps are compared with it."""

import pytest

CLOSE = 1e-4
"""Two best logits that lie nearer may change their places, where sums are made in another order."""


def generated(folder, told, model=None):
    """What `generate` answers of the model in a folder: of each request the tokens, and how far the two best logits
    lie apart. It may be another `model`, that has the tokenizer of the folder.
    """
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    if model is None:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    found = []
    for request in told:
        if "ids" in request:
            ids = torch.tensor([request["ids"][0]])
        else:
            ids = tokenizer(request["prompts"][0], return_tensors="pt").input_ids
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=request["sampling"].max_tokens,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
        )
        best = torch.stack(out.logits)[:, 0].topk(2, -1).values
        found.append((out.sequences[0, ids.shape[1] :].tolist(), (best[:, 0] - best[:, 1]).tolist()))
    return found


def compare(answers, reference, close=CLOSE):
    """Every answer is that of `generate`, or differs first where two logits are `close`; most are the same."""
    same = 0
    for answer, (tokens, gaps) in zip(answers, reference, strict=True):
        (choice,) = answer.choices
        first = next(
            (i for i, pair in enumerate(zip(choice.ids, tokens, strict=False)) if len(set(pair)) > 1), None
        )
        if first is None:
            assert list(choice.ids) == tokens
            same += 1
        else:
            assert gaps[first] < close, f"token {first} is {choice.ids[first]} instead of {tokens[first]}"
    assert same >= len(reference) * 60 / 64
