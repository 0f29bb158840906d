"""Each task on a tiny model: what it answers is what the Auto class called directly computes, batched and not."""

import json

import pytest
from tests.harness.language_models import text
from tests.harness.task_models import Tasks, task_spec, write_task

from trivium.engines.hf.tasks.engine import ENGINE
from trivium.types.errors import Code, ServeError
from trivium.types.payload import Raw, RawForm, RawPart

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

JSON = "application/json"
TEXTS = (text(2, 40), text(3, 90), text(5, 12), text(8, 150))
MASKED = ("the [MASK] is a statement", "a name [MASK] that is not in the class of the object", "[MASK]")
PAIRS = tuple({"question": text(i, 20), "context": text(i + 20, 60 * i)} for i in (1, 3, 9))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}

    def folder(kind):
        if kind not in made:
            made[kind] = write_task(tmp_path_factory.mktemp("tasks") / kind, kind)
        return made[kind]

    return folder


def near(found, expected):
    """The same, numbers within 1e-5."""
    if isinstance(expected, float):
        return found == pytest.approx(expected, abs=1e-5)
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(near(found[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(near, found, expected))
    return found == expected


def plain(value):
    """A pipeline's answer as JSON has it."""
    return json.loads(json.dumps(value, default=float))


def oracle(task, folder, **more):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return transformers.pipeline(task, model=str(folder), tokenizer=tokenizer, dtype=torch.float32, **more)


def seq2seq(folder, words, count=8, **more):
    """The texts of T5, each by a call of its own."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    made = []
    for one in words:
        ids = model.generate(**tokenizer(one, return_tensors="pt"), max_new_tokens=count, **more)
        made.append([tokenizer.decode(row, skip_special_tokens=True) for row in ids])
    return made


def both_ways(tasks, inputs, **parameters):
    """The answers to each input alone, which are those of one request with all and of a batch of requests."""
    alone = [tasks.ask(one, **parameters) for one in inputs]
    batched = tasks.together(*({"inputs": one, "parameters": parameters} for one in inputs))
    assert near(batched, alone)
    return alone


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize(
    ("task", "key"),
    [
        ("text2text-generation", "generated_text"),
        ("summarization", "summary_text"),
        ("translation_en_to_de", "translation_text"),
    ],
)
def test_texts_for_texts(folders, task, key, beams):
    with Tasks(folders("t5"), task=task) as tasks:
        alone = both_ways(tasks, TEXTS, max_new_tokens=8, num_beams=beams)
    expected = [[{key: made[0]}] for made in seq2seq(folders("t5"), TEXTS, num_beams=beams)]
    assert alone == expected
    assert len({one[0][key] for one in alone}) > 1, "random, but not the same for all"


def test_several_texts_for_one(folders):
    parameters = {"max_new_tokens": 6, "num_beams": 3, "num_return_sequences": 2}
    expected = seq2seq(folders("t5"), TEXTS[:2], 6, num_beams=3, num_return_sequences=2)
    with Tasks(folders("t5")) as tasks:
        assert tasks.ask(TEXTS[0], **parameters) == [{"generated_text": one} for one in expected[0]]
        assert tasks.ask(list(TEXTS[:2]), **parameters) == [
            [{"generated_text": one} for one in made] for made in expected
        ]


def test_the_settings_that_config_has_for_a_task(tmp_path):
    own = {"translation_en_to_de": {"prefix": "translate to german: ", "num_beams": 2, "max_length": 7}}
    folder = write_task(tmp_path / "t5", "t5", task_specific_params=own)
    prefixed = ["translate to german: " + one for one in TEXTS]
    expected = [[{"translation_text": one[0]}] for one in seq2seq(folder, prefixed, 6, num_beams=2)]
    with Tasks(folder, task="translation_en_to_de") as tasks:
        assert both_ways(tasks, TEXTS) == expected


def test_a_request_goes_before_the_settings_of_config(tmp_path):
    own = {"summarization": {"min_length": 30, "max_length": 200, "num_beams": 2}}
    folder = write_task(tmp_path / "t5", "t5", task_specific_params=own)
    expected = [[{"summary_text": one[0]}] for one in seq2seq(folder, TEXTS, 5)]
    with Tasks(folder, task="summarization") as tasks:
        assert both_ways(tasks, TEXTS, max_new_tokens=5, num_beams=1) == expected


@pytest.mark.parametrize(
    "more", [{}, {"num_beams": 3}, {"repetition_penalty": 1.3}, {"no_repeat_ngram_size": 2}]
)
def test_texts_that_go_on(folders, more):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders("gpt2"))
    model = transformers.AutoModelForCausalLM.from_pretrained(folders("gpt2")).eval()
    expected = []
    for one in TEXTS:
        inputs = tokenizer(one, return_tensors="pt")
        ids = model.generate(
            inputs["input_ids"], attention_mask=inputs["attention_mask"], max_new_tokens=7, **more
        )
        expected.append([{"generated_text": tokenizer.decode(ids[0], skip_special_tokens=True)}])
    with Tasks(folders("gpt2")) as tasks:
        assert both_ways(tasks, TEXTS, max_new_tokens=7, **more) == expected
        new = tasks.ask(TEXTS[0], max_new_tokens=7, return_full_text=False, **more)[0]["generated_text"]
    assert new
    assert expected[0][0]["generated_text"].endswith(new)


def test_a_text_and_what_it_goes_on_with_are_within_the_context(folders):
    long = "a " * 120
    with Tasks(folders("gpt2")) as tasks:
        with pytest.raises(ServeError, match="knows 128 for both together"):
            tasks.ask(long, max_new_tokens=20)
        whole = tasks.together({"inputs": long}, {"inputs": "a name"})
        assert whole == [tasks.ask(long), tasks.ask("a name")]


def test_draws_repeat_with_a_seed(folders):
    drawn = {"do_sample": True, "seed": 3, "max_new_tokens": 8}
    with Tasks(folders("t5")) as tasks:
        alone = both_ways(tasks, TEXTS, **drawn)
        assert alone == both_ways(tasks, TEXTS, **drawn)
        assert alone != both_ways(tasks, TEXTS, **{**drawn, "seed": 4})


@pytest.mark.parametrize("more", [{}, {"top_k": 2}, {"top_k": None}, {"function_to_apply": "sigmoid"}])
def test_classes_of_texts(folders, more):
    pipeline = oracle("text-classification", folders("classes"))
    with Tasks(folders("classes")) as tasks:
        found = both_ways(tasks, TEXTS, **more)
    assert near(found, plain([pipeline([one], **more) for one in TEXTS]))


def test_every_score_in_the_order_of_classes(folders):
    with Tasks(folders("classes")) as tasks:
        (found,) = tasks.ask(TEXTS[0], return_all_scores=True)
    assert [one["label"] for one in found] == ["LABEL_0", "LABEL_1", "LABEL_2"]


@pytest.mark.parametrize("more", [{}, {"top_k": 2}, {"targets": ["the", "class"]}])
def test_masks_are_filled(folders, more):
    pipeline = oracle("fill-mask", folders("masks"))
    with Tasks(folders("masks")) as tasks:
        found = both_ways(tasks, MASKED, **more)
        assert near(found, plain([pipeline(one, **more) for one in MASKED]))
        two = "the [MASK] of the [MASK]"
        assert near(tasks.ask(two), plain(pipeline(two)))


@pytest.mark.parametrize("strategy", ["none", "simple", "first", "average", "max"])
def test_classes_of_tokens(folders, strategy):
    pipeline = oracle("token-classification", folders("tokens"), aggregation_strategy=strategy)
    with Tasks(folders("tokens")) as tasks:
        found = both_ways(tasks, TEXTS, aggregation_strategy=strategy)
        assert tasks.ask(TEXTS[0], ignore_labels=[])[0]
    expected = plain([[pipeline(one)] for one in TEXTS])
    assert any(one[0] for one in expected)
    assert near(found, expected)


@pytest.mark.parametrize("more", [{}, {"multi_label": True}, {"hypothesis_template": "it is {}"}])
def test_labels_that_nobody_trained(folders, more):
    pipeline = oracle("zero-shot-classification", folders("entails"))
    labels = ["name", "class", "the statement"]
    with Tasks(folders("entails"), task="zero-shot-classification") as tasks:
        found = both_ways(tasks, TEXTS, candidate_labels=labels, **more)
        assert near(tasks.ask(TEXTS[0], candidate_labels="name, class,the statement", **more), found[0])
    assert near(found, plain([[pipeline(one, candidate_labels=labels, **more)] for one in TEXTS]))


def test_features_and_embeddings(folders):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders("features"))
    model = transformers.AutoModel.from_pretrained(folders("features")).eval()
    with torch.inference_mode():
        states = [model(**tokenizer(one, return_tensors="pt")).last_hidden_state for one in TEXTS]
    with Tasks(folders("features")) as tasks:
        assert near(both_ways(tasks, TEXTS), [[one.tolist()] for one in states])
    means = [torch.nn.functional.normalize(one[0].mean(0), dim=0) for one in states]
    with Tasks(folders("features"), task="text-embedding") as tasks:
        assert near(both_ways(tasks, TEXTS), [[one.tolist()] for one in means])
        assert near(tasks.ask(TEXTS[0], normalize=False), [states[0][0].mean(0).tolist()])


def answer_of(folder, question, context, longest=15):
    """The likeliest span, looked for one by one, of a context that is one window."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(folder).eval()
    inputs = tokenizer(question, context, return_tensors="pt", return_offsets_mapping=True)
    offsets, owners = inputs.pop("offset_mapping")[0].tolist(), inputs.sequence_ids(0)
    with torch.inference_mode():
        outputs = model(**inputs)
    is_allowed = torch.tensor([owner == 1 or at == 0 for at, owner in enumerate(owners)])
    begins, ends = (
        one[0].masked_fill(~is_allowed, -1e4).softmax(-1)
        for one in (outputs.start_logits, outputs.end_logits)
    )
    mine = [at for at, owner in enumerate(owners) if owner == 1]
    spans = [(float(begins[a] * ends[b]), a, b) for a in mine for b in mine if a <= b < a + longest]
    score, first, last = max(spans)
    start, end = offsets[first][0], offsets[last][1]
    return {"score": score, "start": start, "end": end, "answer": context[start:end]}


def test_answers_in_contexts(folders):
    pairs = [{"question": text(i, 20), "context": text(i + 20, 40 * i)} for i in (1, 2, 3)]
    with Tasks(folders("questions")) as tasks:
        found = both_ways(tasks, pairs)
        assert near(tasks.together(pairs[0])[0], found[0]), "without inputs around them, too"
        assert tasks.ask(pairs[0], top_k=3)[0]["answer"] == found[0]["answer"]
    assert near(found, [answer_of(folders("questions"), **one) for one in pairs])


def test_a_long_context_is_read_in_windows(folders):
    question, context = text(4, 20), text(9, 2000)
    with Tasks(folders("questions")) as tasks:
        found = tasks.ask({"question": question, "context": context}, max_seq_len=64, doc_stride=16)
        assert context[found["start"] : found["end"]] == found["answer"]
        assert near(
            tasks.ask({"question": question, "context": context}, max_seq_len=64, doc_stride=16), found
        )


def test_a_streamed_answer_is_the_whole_one_in_pieces(folders):
    with Tasks(folders("t5")) as tasks:
        whole = tasks.ask(list(TEXTS), max_new_tokens=12)
    for word in ("true", "huggingface"):
        with Tasks(folders("t5"), enable_streaming=word) as tasks:
            pieces = tasks.streamed(list(TEXTS), max_new_tokens=12)
            assert len(pieces) > 3
            texts = ["".join(piece[i] for piece in pieces) for i in range(len(TEXTS))]
            assert texts == [one["generated_text"] for one in whole]
            with pytest.raises(ServeError, match="num_beams"):
                tasks.streamed(TEXTS[0], num_beams=2)


def test_a_stream_ends_when_nobody_waits(folders):
    from tests.harness.task_models import body

    from trivium.types.operations import Infer

    parts = []

    def send(part):
        parts.append(part)
        return len(parts) < 3

    asked = {"inputs": TEXTS[0], "parameters": {"max_new_tokens": 100, "min_new_tokens": 100}}
    with Tasks(folders("t5"), enable_streaming="true") as tasks:
        assert tasks.runner.stream(Infer("m", body(asked)), send) is None
    assert len(parts) <= 4


WRONG = (
    ({"inputs": 3}, "type int"),
    ({}, "'inputs' is missing"),
    ({"inputs": []}, "has 0 inputs"),
    ({"inputs": ["a", None]}, "'inputs' is missing"),
    ({"inputs": "a", "parametres": {}}, "parameters"),
    ({"inputs": "a", "parameters": {"max_new_token": 3}}, "Did you mean 'parameters.max_new_tokens'"),
    ({"inputs": "a", "parameters": {"num_beams": "many"}}, "an integer from 1 to 16"),
    ({"inputs": "a", "parameters": {"num_return_sequences": 2}}, "num_beams is 1"),
    ({"inputs": "a " * 5000}, "the model takes 4096"),
    ({"inputs": "a", "parameters": {"max_new_tokens": 5000}}, "the model knows 4096"),
    ({"inputs": "a", "parameters": {"max_new_tokens": 2, "min_length": 9}}, "has 2 tokens at most"),
)


@pytest.mark.parametrize(("document", "words"), WRONG)
def test_a_wrong_request_is_told_and_its_neighbours_are_answered(folders, document, words):
    good = {"inputs": TEXTS[0], "parameters": {"max_new_tokens": 4}}
    with Tasks(folders("t5")) as tasks:
        first, wrong, last = tasks.together(good, document, good)
    assert first == last
    assert first[0]["generated_text"]
    assert wrong.code is Code.INVALID
    assert words in wrong.message


def test_a_language_is_asked_of_a_tokenizer_that_knows_some(folders):
    with (
        Tasks(folders("t5"), task="translation") as tasks,
        pytest.raises(ServeError, match="knows no languages"),
    ):
        tasks.ask("the name", tgt_lang="de")


def test_a_text_that_is_too_long_is_cut_where_that_is_asked(folders):
    with Tasks(folders("classes")) as tasks:
        with pytest.raises(ServeError, match=r"takes 128.*truncation"):
            tasks.ask("a " * 500)
        assert tasks.ask("a " * 500, truncation=True) == tasks.ask("a " * 126)


def test_a_mask_that_is_missing_is_named(folders):
    with Tasks(folders("masks")) as tasks, pytest.raises(ServeError, match=r"no \[MASK\]"):
        tasks.ask("the statement")


def rows(tasks, *texts, **more):
    """The predictions of one request of KServe's v1 protocol; its error is raised."""
    data = json.dumps({"instances": texts, **more}).encode()
    (outcome,) = tasks.outcomes([Raw((RawPart(data, "application/json"),), form=RawForm.ROWS)])
    if isinstance(outcome, ServeError):
        raise outcome
    document = json.loads(outcome.parts[0].data)
    assert list(document) == ["predictions"]
    return document["predictions"]


def best(folder, kind, *texts):
    """The number of the likeliest of what an Auto class scores, texts one by one."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = getattr(transformers, kind).from_pretrained(folder).eval()
    with torch.no_grad():
        return [model(**tokenizer(one, return_tensors="pt")).logits.argmax(-1)[0].tolist() for one in texts]


def test_rows_of_kserve_are_answered_by_the_number_of_a_class(folders):
    with Tasks(folders("classes")) as tasks:
        expected = best(folders("classes"), "AutoModelForSequenceClassification", *TEXTS)
        assert rows(tasks, *TEXTS) == expected
        assert rows(tasks, *({"text": one} for one in TEXTS)) == expected
        assert rows(tasks, "a " * 500) == rows(tasks, "a " * 126), "it is cut, as KServe does"
        scored = rows(tasks, *TEXTS, parameters={"top_k": 3})
        assert near(scored, tasks.ask(list(TEXTS), top_k=3)), (
            "kserve#3958: who asks for probabilities gets them"
        )


def test_rows_of_kserve_are_answered_by_the_numbers_of_all_tokens(folders):
    with Tasks(folders("tokens")) as tasks:
        found = rows(tasks, *TEXTS)
    assert found == [[one] for one in best(folders("tokens"), "AutoModelForTokenClassification", *TEXTS)]


def test_rows_of_kserve_are_answered_by_the_words_of_masks(folders):
    texts = (*MASKED, "the [MASK] of the [MASK]")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders("masks"))
    with Tasks(folders("masks")) as tasks:
        found = rows(tasks, *texts)
    for text_given, words in zip(texts, found, strict=True):
        places = [at for at, one in enumerate(tokenizer(text_given)["input_ids"]) if one == 5]
        (ids,) = best(folders("masks"), "AutoModelForMaskedLM", text_given)
        assert words == tokenizer.decode([ids[at] for at in places])


def test_rows_of_kserve_to_a_task_that_it_has_no_form_for(folders):
    with Tasks(folders("features"), task="text-embedding") as tasks:
        assert near(rows(tasks, *TEXTS), tasks.ask(list(TEXTS)))
    with Tasks(folders("questions")) as tasks:
        assert near(rows(tasks, *PAIRS), tasks.ask(list(PAIRS)))
    with Tasks(folders("t5")) as tasks:
        found = rows(tasks, *TEXTS[:2], parameters={"max_new_tokens": 8})
        expected = tasks.ask(list(TEXTS[:2]), max_new_tokens=8)
        assert found == [one["generated_text"] for one in expected]


def test_rows_of_kserve_share_a_batch_with_other_requests(folders):
    with Tasks(folders("classes")) as tasks:
        mixed = [
            Raw((RawPart(json.dumps({"instances": TEXTS[:1]}).encode(), JSON),), form=RawForm.ROWS),
            Raw((RawPart(json.dumps({"inputs": TEXTS[0]}).encode(), JSON),)),
            Raw((RawPart(json.dumps({"inputs": TEXTS[0]}).encode(), JSON),), form=RawForm.ROWS),
        ]
        counted, *told = [json.loads(one.parts[0].data) for one in tasks.outcomes(mixed)]
    assert counted == {
        "predictions": best(folders("classes"), "AutoModelForSequenceClassification", TEXTS[0])
    }
    assert told[0] == told[1]
    assert told[0][0]["label"]


@pytest.mark.parametrize(
    ("instances", "words"),
    [
        ("a text", "no list"),
        ([], "0 inputs"),
        ([1], "type int"),
        ([{"a": "b", "c": "d"}], "type dict"),
        ([["a"]], "type list"),
    ],
)
def test_rows_of_kserve_that_are_no_texts(folders, instances, words):
    body_of = Raw((RawPart(json.dumps({"instances": instances}).encode(), JSON),), form=RawForm.ROWS)
    with Tasks(folders("classes")) as tasks:
        (outcome,) = tasks.outcomes([body_of])
    assert outcome.code is Code.INVALID
    assert words in outcome.message


def test_rows_of_kserve_beside_inputs_are_refused_and_no_neighbour_is_hurt(folders):
    both, one = ({"instances": TEXTS[:1], "inputs": "a"}, {"instances": TEXTS[:1]})
    bodies = [Raw((RawPart(json.dumps(each).encode(), JSON),), form=RawForm.ROWS) for each in (both, one)]
    with Tasks(folders("classes")) as tasks:
        refused, answered = tasks.outcomes(bodies)
    assert refused.code is Code.INVALID
    assert "both 'instances' and 'inputs'" in refused.message
    assert json.loads(answered.parts[0].data)["predictions"]


def test_an_answer_is_bounded(folders, monkeypatch):
    with Tasks(folders("masks")) as tasks, pytest.raises(ServeError, match="at most 2000 are answered"):
        tasks.ask("[MASK] " * 50, top_k=100)
    monkeypatch.setattr("trivium.engines.hf.tasks.task_runner.MOST_FEATURES", 1000)
    with Tasks(folders("features")) as tasks, pytest.raises(ServeError, match="at most 1000 are answered"):
        tasks.ask(["a " * 20] * 2)


@pytest.mark.parametrize(
    ("lengths", "most", "expected"),
    [
        ([], 4, []),
        ([1, 2, 3], 2, [[0, 1], [2]]),
        ([4096, 1, 4096, 5000], 32, [[0], [1], [2], [3]]),
        ([2000, 2048, 10, 10], 32, [[0, 1], [2, 3]]),
    ],
)
def test_which_rows_share_a_call(lengths, most, expected):
    from trivium.engines.hf.tasks.task_model import shared

    assert [list(one) for one in shared(lengths, most)] == expected


def test_labels_have_to_be_sent(folders):
    with (
        Tasks(folders("entails"), task="zero-shot-classification") as tasks,
        pytest.raises(ServeError, match="candidate_labels"),
    ):
        tasks.ask("the statement")


def test_what_the_files_tell_of_the_task(folders):
    told = ENGINE.facts(task_spec(folders("tokens")))
    assert told.details["task"] == ("token-classification", "config.json (architectures)")
    assert [one.name for one in told.inputs] == ["text_input", "parameters"]
    told = ENGINE.facts(task_spec(folders("features"), task="text-embedding"))
    assert told.outputs[0].dims == (-1, 32)
    with pytest.raises(ServeError, match="fill-mask is for classes that end in ForMaskedLM"):
        ENGINE.facts(task_spec(folders("t5"), task="fill-mask"))
    with pytest.raises(ServeError, match="expected one of text2text-generation"):
        ENGINE.facts(task_spec(folders("t5"), task="paint"))
