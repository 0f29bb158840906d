"""A continuation says, behind its prompt, what all tokens say at once: for tokenizers of every kind, cut anywhere."""

import pytest
from tests.harness.continuations import check_stops, check_wherever_a_prompt_ends, reading

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

TEXT = "Once upon a time, there was a naïve café; 你好 👩‍👩‍👧 end.  Two blanks"
WORDS = ["Once", "upon", "a", "time", "there", "was", "blanks", "end", "Two", "time,", "na", "ca", "t", "s"]
MARK = "▁"
LETTERS = sorted({letter for letter in TEXT if ord(letter) < 128 and letter != " "})


def _bytes_and_pieces():
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), MARK]
    pieces += [*LETTERS, *(MARK + word for word in WORDS), *WORDS]
    return list(dict.fromkeys(pieces))


def _llama_decoder():
    made = tokenizers.decoders
    return made.Sequence([made.Replace(MARK, " "), made.ByteFallback(), made.Fuse(), made.Strip(" ", 1, 0)])


def _special(made):
    made.add_special_tokens(["<s>", "</s>"])
    return made


def unigram(scheme):
    scores = [
        (piece, -float(i) / 100 - (8 if len(piece) == 1 else 0))
        for i, piece in enumerate(_bytes_and_pieces())
    ]
    made = tokenizers.Tokenizer(tokenizers.models.Unigram(scores, 0, byte_fallback=True))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(MARK, scheme)
    made.decoder = tokenizers.decoders.Sequence(
        [tokenizers.decoders.ByteFallback(), tokenizers.decoders.Metaspace(MARK, scheme)]
    )
    return _special(made)


def fallback(adds_blank):
    vocabulary = {piece: i for i, piece in enumerate(_bytes_and_pieces())}
    made = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    normalizers = tokenizers.normalizers
    blank = [normalizers.Prepend(MARK)] if adds_blank else []
    made.normalizer = normalizers.Sequence([*blank, normalizers.Replace(" ", MARK)])
    made.decoder = _llama_decoder()
    return _special(made)


def byte_level(adds_blank):
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=adds_blank)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<unk>", "<s>", "</s>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([TEXT] * 3, trainer)
    return made


def within_characters():
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    pieces = ["<unk>", "<s>", "</s>", *alphabet, "ðŁ", "Ġð", "ĠðŁ", "Ġä", "Ġä½"]
    merges = [("ð", "Ł"), ("Ġ", "ðŁ"), ("Ġ", "ä"), ("Ġä", "½")]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    return _special(made)


def word_piece():
    letters = sorted(set(TEXT) - {" "})
    pieces = ["[UNK]", "<s>", "</s>", *WORDS, *letters, *(f"##{one}" for one in letters)]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.decoder = tokenizers.decoders.WordPiece()
    return _special(made)


def ended_words():
    letters = sorted(set(TEXT) - {" "})
    pieces = ["<unk>", "<s>", "</s>", *letters, *(f"{one}</w>" for one in letters)]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    made = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocabulary, [], unk_token="<unk>", end_of_word_suffix="</w>")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.decoder = tokenizers.decoders.BPEDecoder("</w>")
    return _special(made)


def added(made):
    made.add_tokens([tokenizers.AddedToken(" was a"), tokenizers.AddedToken("time, ", normalized=False)])
    return made


KINDS = {
    "unigram with the first blank": lambda: unigram("always"),
    "unigram with the first blank of a text": lambda: unigram("first"),
    "unigram without the first blank": lambda: unigram("never"),
    "byte fallback with the first blank": lambda: fallback(True),
    "byte fallback without the first blank": lambda: fallback(False),
    "byte level": lambda: byte_level(False),
    "byte level with the first blank": lambda: byte_level(True),
    "word pieces": word_piece,
    "ended words": ended_words,
    "byte level whose tokens end within a character": within_characters,
    "added tokens with blanks": lambda: added(byte_level(False)),
    "added tokens with blanks, byte fallback": lambda: added(fallback(True)),
}


@pytest.fixture(scope="module", params=KINDS)
def made(request):
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=KINDS[request.param](), bos_token="<s>", eos_token="</s>"
    )


def test_prompt_and_continuation_are_the_whole_text(made):
    read = reading(made)
    ids = made(TEXT, add_special_tokens=False)["input_ids"]
    end = made.eos_token_id
    for tokens in (ids, [made.bos_token_id, *ids], [*ids[:5], end, end, *ids[5:], end]):
        check_wherever_a_prompt_ends(read.decode, tokens, read.hidden)


def test_special_tokens_that_are_shown_make_no_difference(made):
    read = reading(made)
    ids = [made.bos_token_id, *made(TEXT, add_special_tokens=False)["input_ids"], made.eos_token_id]
    check_wherever_a_prompt_ends(read.decode_all, ids)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_stop_text_is_cut_at_every_place(made, size):
    read = reading(made)
    ids = made(TEXT, add_special_tokens=False)["input_ids"]
    for cut in (1, len(ids) // 3, len(ids) // 2):
        if not read.decode(ids[:cut]).endswith("\N{REPLACEMENT CHARACTER}"):
            check_stops(read, ids, cut, size)


def test_names_tell_tokens_apart_and_say_their_bytes(made):
    read = reading(made)
    known = range(len(made))
    names = [read.name(token) for token in known]
    assert all(names)
    twice = {name.strip() for name in names if names.count(name) > 1}
    kind = type(made.backend_tokenizer.decoder).__name__
    # word pieces are written without the blank in front of punctuation, and ended words without their end
    assert twice <= ({",", "."} if kind == "WordPiece" else set(TEXT) if kind == "BPEDecoder" else set())
