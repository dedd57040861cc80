"""Real text: Multi30k and Tatoeba, from the folder named by LEARNING_TO_ALIGN_DATA.

Without that folder these tests are skipped, by name.
"""

import os
from pathlib import Path

import pytest
import torch

from utils.corpora import DATA_VARIABLE, load_multi30k, load_tsv
from utils.data import BatchLoader
from utils.decoding import translate
from utils.models import build_model
from utils.text import detokenize, tokenize
from utils.training import evaluate_loss, train_step


def needs(name):
    folder = os.environ.get(DATA_VARIABLE)
    present = bool(folder) and (Path(folder) / name).exists()
    reason = f"no {name} in the folder that {DATA_VARIABLE} names"
    return pytest.mark.skipif(not present, reason=reason)


def check_corpus(corpus):
    """What holds for every corpus of real text."""
    source, target = corpus.vocabs(min_freq=2)
    assert (source.lang, target.lang) == (corpus.source_lang, corpus.target_lang)
    for pairs in corpus.splits.values():
        assert all(pair.source and pair.target for pair in pairs)
    for split in corpus.splits:
        batch = next(BatchLoader(corpus[split], source, target).epoch(0))
        assert batch.source.shape[0] == batch.target_out.shape[0] == 64
    for side, lang in enumerate((corpus.source_lang, corpus.target_lang)):
        for pairs in corpus.splits.values():
            for pair in pairs:
                sentence = detokenize(pair[side], lang)
                assert tokenize(sentence, lang) == list(pair[side])


@needs("multi30k")
def test_multi30k():
    corpus = load_multi30k()
    sizes = {split: len(pairs) for split, pairs in corpus.splits.items()}
    assert sizes == {"train": 29_000, "valid": 1_014, "test": 1_000}
    first = corpus["train"][0]
    german = "zwei junge weiße männer sind im freien in der nähe vieler büsche ."
    english = "two young , white males are outside near many bushes ."
    assert (" ".join(first.source), " ".join(first.target)) == (german, english)
    assert [len(vocab) for vocab in corpus.vocabs(min_freq=2)] == [7855, 5924]
    check_corpus(corpus)


def no_sentence_in_two_splits(corpus):
    for side in (0, 1):
        sets = [{pair[side] for pair in pairs} for pairs in corpus.splits.values()]
        assert len(set.union(*sets)) == sum(map(len, sets))


@needs("tatoeba/fra.txt")
def test_tatoeba_french():
    corpus = load_tsv("tatoeba/fra.txt", "en", "fr", valid=300, test=300)
    assert repr(corpus) == "fra.txt en→fr: train 4,400, valid 300, test 300"
    no_sentence_in_two_splits(corpus)
    check_corpus(corpus)


@needs("tatoeba/cmn.txt")
def test_tatoeba_chinese():
    # Line 13 of the file has no tab.
    with pytest.raises(
        ValueError, match="cmn.txt, line 13: wrong number of columns, 1 "
    ):
        load_tsv("tatoeba/cmn.txt", "en", "zh")
    corpus = load_tsv("tatoeba/cmn.txt", "zh", "en", skip_bad_lines=True)
    assert corpus.skipped == (13,)
    sizes = {split: len(pairs) for split, pairs in corpus.splits.items()}
    assert sizes == {"train": 28_979, "valid": 1_000, "test": 1_000}
    no_sentence_in_two_splits(corpus)
    source, target = corpus.vocabs()
    assert "我" in source and "i" in target
    # By character, but for the one line with a space between Chinese characters.
    words = [w for w in source.idx_to_token[4:] if len(w) > 1 and not w.isascii()]
    assert sorted(words) == ["我没什么要跟他说的", "问题是"]


def learns(corpus, steps=12):
    """Train for a few steps; the held-out loss must fall, and a sentence translate."""
    vocabs = corpus.vocabs(min_freq=2)
    torch.manual_seed(0)
    model = build_model("attention", *map(len, vocabs), 32, 64, bidirectional=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    held_out = BatchLoader(corpus["test"][:64], *vocabs)
    before = evaluate_loss(model, held_out)
    batches = BatchLoader(corpus["train"], *vocabs, batch_size=32).epoch(0)
    for _ in range(steps):
        train_step(model, next(batches), optimizer)
    assert evaluate_loss(model, held_out) < before - 0.5
    for pair in corpus["test"][:3]:
        sentence = detokenize(pair.source, corpus.source_lang)
        translation = translate(model, sentence, *vocabs, max_steps=20)
        shape = len(translation.tokens), len(pair.source) + 1  # with <eos>
        assert translation.attention_weights.shape == shape


@needs("multi30k")
def test_training_on_multi30k():
    learns(load_multi30k("de", "en"))


@needs("tatoeba/fra.txt")
def test_training_on_tatoeba_french():
    learns(load_tsv("tatoeba/fra.txt", "en", "fr", valid=300, test=300))


@needs("tatoeba/cmn.txt")
def test_training_on_tatoeba_chinese():
    learns(load_tsv("tatoeba/cmn.txt", "en", "zh", skip_bad_lines=True))
