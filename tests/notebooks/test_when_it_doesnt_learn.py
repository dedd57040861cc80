"""Each fault of notebooks/WHEN_IT_DOESNT_LEARN.md, made: the page's line shows it."""

import copy
import math
import random
import re
from functools import cache
from pathlib import Path

import pytest
import torch
from helpers.repo import read
from helpers.training import LETTERS
from torch.nn import functional as F

from utils import attention, data
from utils.alignment import forced_weights
from utils.checkpoint import save_checkpoint
from utils.data import BatchLoader, Pair
from utils.decoding import translate
from utils.metrics import alignment_error_rate, links_from_weights
from utils.models import build_model
from utils.seq2seq import Decoder, Seq2SeqAttentionDecoder, Seq2SeqEncoder
from utils.text import EOS, UNK, Vocab
from utils.training import Trainer, batch_loss

PAGE = read("notebooks/WHEN_IT_DOESNT_LEARN.md")
CODES = set(re.findall(r"`([^`\n]+)`", PAGE))
VOCABS = Vocab([[*LETTERS]], "en"), Vocab([[*LETTERS.upper()]], "en")
ENCODE, DECODE = Seq2SeqEncoder.forward, Decoder.forward
ENCODE_PAIRS, SCORE = data.encode_pairs, attention.AdditiveAttention.score


def axes_mixed(encoder, X, lens):
    outputs, hidden = ENCODE(encoder, X, lens)
    return outputs.reshape(X.shape[1], len(X), -1).transpose(0, 1), hidden


FLAT = attention.AdditiveAttention, "score", lambda *given: SCORE(*given).detach()
ONES = attention, "masked_softmax", lambda X, lens: F.softmax(X, dim=1)
STRIPES = Seq2SeqAttentionDecoder, "query", lambda _, h: 0 * h[-1].unsqueeze(1)
MIXED = Seq2SeqEncoder, "forward", axes_mixed
NO_MASK = attention, "masked_softmax", lambda X, lens: F.softmax(X, dim=-1)
PADDED = Seq2SeqEncoder, "forward", lambda e, X, n: ENCODE(e, X, 0 * n + X.shape[1])
FORGETS = Decoder, "forward", lambda d, X, state, *_: (DECODE(d, X, state)[0], state)


def after(model, pairs, vocabs=VOCABS, trainer=None):
    """The names of the page's first cell."""
    src_vocab, tgt_vocab = vocabs
    names = {**locals()}
    exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], names)
    return names


def look(start, names, **others):
    """What the page's line shows that begins like this; `x = …` gives names an x."""
    (code,) = [code for code in CODES if code.startswith(start)]
    return exec(code, names) if " = " in code else eval(code, {**names, **others})


def toy(n=1000, seed=0, lo=2, hi=6):
    """Letters, in the other order and as capitals."""
    rng = random.Random(seed)
    words = [rng.choices(LETTERS, k=rng.randint(lo, hi)) for _ in range(n)]
    return [Pair(tuple(w), tuple("".join(w[::-1]).upper())) for w in words]


def train(epochs=6, lr=0.01, kind="attention", n=1000, vocabs=VOCABS, **options):
    """The page's names after a training of about a second."""
    torch.manual_seed(0)
    model = build_model(kind, *map(len, vocabs), 16, 32, bidirectional=True)
    loader = BatchLoader(toy(n), *vocabs, batch_size=32)
    valid = BatchLoader(toy(100, 9), *vocabs)
    trainer = Trainer(model, loader, epochs, valid, lr, **options).fit(progress=False)
    return after(model, toy(n)[:200], vocabs, trainer)


trained = cache(train)


def loss_of(names):
    return names["trainer"].history[-1]["valid_loss"]


def test_every_line_of_the_page_is_tried():
    starts = re.findall(r"""look\(["'](.+?)["'],""", Path(__file__).read_text("utf-8"))
    lines = [c for c in CODES if re.search(r"[\[(]\w|==|, |training$|\.unk", c)]
    assert [line for line in lines if not line.startswith(tuple(starts))] == []


def test_before_you_search_and_the_loss_doesnt_fall():
    names = {**trained(), "model": build_model(**trained()["model"].config)}
    reads, writes = look("[tgt_vocab.to_tokens", names)
    assert reads[0] == "<bos>" and reads[1:3] == writes[:2] and EOS in writes
    first, guess = look("trainer.losses[0]", names)
    assert abs(first - guess) < 0.3
    look("twin = ", names), look("adam = ", names)
    assert look("[train_step(twin", names) < 0.1
    assert look("{*map(id", trained()) and not look("{*map(id", names)
    for rate, low, high in ((10, 10, 1000), (0.0003, 0.9, 1.1)):
        highest, guess = look("max(trainer.losses)", train(1, rate))
        assert low < highest / guess < high


def test_it_repeats_itself_and_bleu_is_0(monkeypatch):
    names, early = trained(), train(1, n=300)
    loss, guess = look('trainer.history[-1]["train_loss"], math', early)
    assert 0.7 * guess < loss < guess
    assert any(h[:1] * 2 == h for h in early["hypotheses"])
    assert look("bleu(hyp", early) < 3 and look("bleu(hyp", names) > 70
    assert look("bleu(ref", after(names["model"], toy(9, hi=3))) == 0
    small = [[*map(str.lower, h)] for h in names["hypotheses"]]
    written, right = look("hypotheses[0]", names, hypotheses=small)
    assert written[0].islower() and right[0].isupper()
    assert look("bleu(hyp", names, hypotheses=small) == 0
    right = look("greedy_decode", names).tolist()
    monkeypatch.setattr(*FORGETS)
    forgot = after(names["model"], names["pairs"])["hypotheses"]
    assert sum(len(h) > 13 and len({*h[-8:]}) < 4 for h in forgot) > 50
    assert look("greedy_decode", names).tolist() != right


def test_what_falls_isnt_the_loss_of_the_next_word():
    def unshifted(model, batch):
        return batch_loss(model, batch._replace(target_in=batch.target_out))

    names = train(loss_function=unshifted)
    same = names["batch"]._replace(target_in=names["batch"].target_out)
    assert look("batch.target_in[0].equal", names, batch=same)
    alike = [len({*r.tokens}) == 1 < 9 < len(r.tokens) for r in names["results"]]
    assert sum(alike) > 150
    course, ours = look("evaluate_loss(model, loader), ", names)
    assert course > 5 and ours < 0.5 and look("bleu(hyp", names) < 5


def test_only_unk():
    few = train(2, vocabs=(VOCABS[0], Vocab([["A"]], "en")))
    words = [word for h in few["hypotheses"] for word in h]
    assert words.count(UNK) > 0.8 * len(words)
    assert look("(batch.target_out == UNK_ID", few) > 0.4
    names = after(trained()["model"], [Pair(p.target, p.target) for p in toy(50)])
    assert look("results[0].unknown", names) == [*names["pairs"][0].source]
    assert UNK not in names["hypotheses"][0] and look("bleu(hyp", names) < 20


def test_nan():
    names = trained()
    assert 1000 < max(train(1, 1e4)["trainer"].losses) < math.inf
    names = {**names, "logits": 1000 * names["logits"]}
    mine, course = look("logits.softmax", names)
    assert mine == -math.inf and course.isfinite()
    look("torch.autograd.set_detect_anomaly", names)
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="Backward.* nan"):
        names["logits"].softmax(-1).log().mean().backward()
    torch.autograd.set_detect_anomaly(False)
    empty = names["batch"]._replace(source_lens=0 * names["batch"].source_lens)
    assert torch.full((1, 4), -torch.inf).softmax(-1).isnan().all()
    assert look("batch.source_lens.min", names, batch=empty) == 0


@pytest.mark.slow
def test_attention_that_doesnt_help_and_heatmaps(monkeypatch):
    names, fixed = trained(), loss_of(train(kind="fixed"))
    low = [loss_of(train(2, 0.001, kind)) for kind in ("fixed", "attention")]
    assert loss_of(names) < fixed - 0.2 and abs(low[0] - low[1]) < 0.1
    for fault in (None, FLAT, ONES, STRIPES, MIXED):
        with monkeypatch.context() as patch:
            fault and patch.setattr(*fault)
            names = train()
        highest, even = look("weights.max", names)
        assert (highest < 1.6 * even) == (fault is FLAT)
        assert (look("model.decoder.attention.w_v", names) is None) == (fault is FLAT)
        assert (look("weights.sum", names).max() > 2) == (fault is ONES)
        assert (look("(weights - weights", names) < 1e-6) == (fault in (ONES, STRIPES))
        assert (loss_of(names) > fixed - 0.2) == (fault is not None)
    assert loss_of(names) > fixed + 0.1  # of other sentences: worse than none
    untrained = after(build_model(**names["model"].config), toy(99))
    highest, even = look("weights.max", untrained)
    assert highest < 1.6 * even
    pairs = trained()["pairs"]
    gold = [set(enumerate(reversed(range(len(p.source))))) for p in pairs]
    own = map(links_from_weights, forced_weights(trained()["model"], pairs, VOCABS))
    assert alignment_error_rate([*own], gold).aer < 0.4
    assert alignment_error_rate(look("[diagonal_links", trained()), gold).aer > 0.6


@pytest.mark.parametrize("fault", [None, NO_MASK, PADDED, MIXED])
def test_fine_alone_and_wrong_in_a_batch(fault, monkeypatch):
    model, pairs = trained()["model"], toy(30)
    right = trained()["hypotheses"][:30]
    pairs += toy(1, lo=30, hi=30)  # so that the others are padded
    fault and monkeypatch.setattr(*fault)
    names = after(model, pairs)
    lens = names["batch"].source_lens
    names |= {"i": lens.argmin().item(), "n": lens.min().item()}
    names["alone"] = look("model.encoder(batch.source[i", names)
    assert [after(model, [pair])["hypotheses"][0] for pair in pairs[:30]] == right
    assert (names["hypotheses"][:30] == right) == (fault is None)
    assert (look("(weights * ~length_mask", names) > 1) == (fault is NO_MASK)
    assert (look("(model.encoder(", names) > 0.1) == (fault in (PADDED, MIXED))


def test_good_in_training_and_bad_in_validation():
    names = train(200, n=30)
    best, last = look("min(trainer.history", names), names["trainer"].history[-1]
    assert last["train_loss"] < 0.6 and best["valid_loss"] < last["valid_loss"] - 0.2
    names, long = trained(), after(trained()["model"], toy(100, lo=9, hi=11))
    assert look("bleu(hyp", long) < 0.5 * look("bleu(hyp", names)
    assert look("max(len(p.source)", long) > 8 > look("max(len(p.source)", names)
    assert look("longest_gap", long) >= 2  # and it stops too early
    assert look("sum(map(len, hyp", long) < 0.8 < look("sum(map(len, hyp", names)


def test_it_never_stops_or_stops_too_early(monkeypatch):
    def no_eos(*given):
        sources, targets = ENCODE_PAIRS(*given)
        return sources, [ids[:-1] for ids in targets]

    with monkeypatch.context() as patch:
        patch.setattr(data, "encode_pairs", no_eos)
        names = train(2)
    assert look("(batch.target_out == EOS_ID", names).max() == 0
    assert all(result.tokens[-1] != EOS for result in names["results"])
    names, shares = trained(2), []
    for way in ({}, {"beam_size": 10}, {"beam_size": 10, "length_penalty": 1}):
        sources = [pair.source for pair in names["pairs"]]
        words = [t.words for t in translate(names["model"], sources, *VOCABS, **way)]
        shares.append(look("sum(map(len, hyp", names, hypotheses=words))
    assert shares[1] < shares[0] - 0.1 and shares[2] > shares[1] + 0.2


def test_saved_it_is_another_model_or_dropout_was_left_on(tmp_path):
    trainer, path = trained(2)["trainer"], tmp_path / "model.safetensors"
    model = build_model(**trainer.model.config | {"dropout": 0.5}).train()
    names = {**after(model, toy(9)), "path": path}
    losses = [batch_loss(model.train(), names["batch"]).item() for _ in range(2)]
    assert look("model.training", names) and losses[0] != losses[1]
    save_checkpoint(path, trainer.model, *VOCABS, trainer=trainer)
    look("saved = ", names)
    assert not look("model.training", names, model=names["saved"].model)
    tokens = VOCABS[1].idx_to_token
    other = Vocab([], "en", [*tokens[:4], *tokens[:3:-1]])
    assert look("src_vocab == saved", names) == (True, True)
    assert look("src_vocab == saved", names, tgt_vocab=other) == (True, False)
    own = [copy.deepcopy(trainer.model) for _ in range(3)]
    ways = zip(own, (3, 3, 4), strict=True)
    fresh, resumed, longer = (Trainer(m, trainer.loader, n, lr=0.01) for m, n in ways)
    for other in (resumed, longer):
        other.resume(path)
    found = [look("trainer.step", names, trainer=t) for t in (fresh, resumed, longer)]
    assert [step for step, _ in found] == [0, 64, 64] and found[1][1] < found[2][1]
    ends = [t.fit(progress=False).losses[-1] for t in (fresh, resumed, longer)]
    assert min(abs(ends[1] - ends[0]), abs(ends[1] - ends[2])) > 1e-3
