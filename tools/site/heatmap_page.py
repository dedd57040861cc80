"""Numbers and pictures of the page "Is the heatmap right?", from models and results.

pages/is_the_heatmap_right.md has their names in braces. What it says of one sentence's
words is asserted here, so that `make site` fails where that no longer holds.
"""

from collections import Counter
from pathlib import Path
from statistics import mean, mode

import matplotlib.pyplot as plt
import numpy as np
import torch

from tools.experiments.choices import erasure
from utils import metrics
from utils.alignment import forced_weights, longest_gap
from utils.checkpoint import load_checkpoint
from utils.corpora import load_village
from utils.decoding import translate
from utils.gold import gold_links
from utils.models import build_model
from utils.plotting import plot_curves, show_heatmap
from utils.slides import stored
from utils.text import detokenize

DATA = Path(__file__).resolve().parents[2] / "data"
DOOR = "our grandmother did not close this blue door ."
HAT, ZZZ = "The old hat is not blue.", "The old zzz is not blue."
MOUSE = "the mouse eats fresh cheese every evening ."
NEIGHBOUR = "my grandmother is reading a newspaper because"  # and so on
ARTICLES = "la le à de qu' a".split()  # and others that often look ahead
LENGTHS = "3–6 7–10 11–15 16–20 21–25 26–30 31–40 41–50 51–57".split()


def loaded(name):
    """A shipped model and its two vocabularies."""
    path = DATA / "models" / f"village-en-{name}.safetensors"
    model, *vocabs = load_checkpoint(path)[:3]
    return model, vocabs


def runs_of(name, **arm):
    """The stored runs of an arm, one of each seed, at the arm's own learning rate."""
    own = [run for run in stored(name)["runs"] if arm.items() <= run["run"].items()]
    rate = mode(run["run"].get("lr") for run in own)
    return [run for run in own if run["run"].get("lr") == rate]


def beginning(pairs, words):
    """The first pair whose source begins so, and its number."""
    numbered = ((pair, n) for n, pair in enumerate(pairs))
    return next(one for one in numbered if " ".join(one[0].source).startswith(words))


def error_rates(pairs, **weights):
    """The alignment error rates of weights, of a diagonal, and of chance."""
    links = {name: map(metrics.links_from_weights, w) for name, w in weights.items()}
    sizes, rng = [[*map(len, pair[:2])] for pair in pairs], np.random.default_rng(0)
    links["diagonal"] = (metrics.diagonal_links(*size) for size in sizes)
    links["chance"] = (metrics.random_links(*size, rng) for size in sizes)
    rate, gold = metrics.alignment_error_rate, gold_links(pairs)
    return {name: rate([*found], *gold).aer for name, found in links.items()}


def wrong_looks(pairs, weights):
    """Of each wrong link: its target word; does the look go ahead, as 07 says it?"""
    for pair, w in zip(pairs, weights, strict=True):
        gold = pair.alignment | pair.possible
        for j, i in metrics.links_from_weights(w) - gold:
            yield pair.target[i], (j, i + 1) in gold or (j, i + 2) in gold


def with_gold(weights, pair, **options):
    """The heatmap with gold's frames; in how many rows the darkest cell has one."""
    gold = {"gold": pair.alignment, "possible": pair.possible}
    inside = metrics.links_from_weights(weights) & (pair.alignment | pair.possible)
    return show_heatmap(weights, *pair[:2], **gold, **options), len(inside)


def heatmap_of(made):
    return show_heatmap(made.attention_weights, made.source_tokens, made.tokens)


def new_axes(height):
    _, ax = plt.subplots(figsize=(6, height), layout="constrained", facecolor="white")
    return ax


def of_reading():
    """One sentence's picture, gold, an untrained model; then a thousand sentences."""
    (model, vocabs), pairs = loaded("fr"), load_village("en", "fr")["test"]
    (reader, words), chinese = loaded("zh"), load_village("en", "zh")["test"]
    torch.manual_seed(0)
    untrained = forced_weights(build_model(**model.config), pairs, vocabs)
    ours = forced_weights(model, pairs, vocabs)
    shuffled = [w[:, torch.randperm(w.shape[1])] for w in ours]
    pair, n = beginning(pairs, DOOR)
    assert pair.target[-3:] == ("porte", "bleue", ".")
    rates = error_rates(pairs, attention=ours, untrained=untrained, shuffled=shuffled)
    zh = error_rates(chinese, zh_attention=forced_weights(reader, chinese, words))
    looks = list(wrong_looks(pairs, ours))
    wrong, ahead = Counter(w for w, _ in looks), Counter(w for w, a in looks if a)
    often = Counter(word for pair in pairs for word in pair.target)
    names = [f"{word} ({wrong[word]} of {often[word]})" for word in ARTICLES]
    ax = new_axes(2.8)
    ax.barh(names, [wrong[w] for w in ARTICLES], color="#BBBBBB", label="wrong links")
    ax.barh(names, [ahead[w] for w in ARTICLES], color="#0072B2", label="looks ahead")
    ax.invert_yaxis()
    ax.legend(frameon=False)
    gold, right = with_gold(ours[n], pair)
    return {
        **rates,
        "zh_attention": zh["zh_attention"],
        "zh_diagonal": zh["diagonal"],
        "source": detokenize(pair.source, "en"),
        "target": detokenize(pair.target, "fr"),
        "reading": show_heatmap(ours[n], *pair[:2]),
        "gold": gold,
        "right": right,
        "rows": len(pair.target),
        "nothing": show_heatmap(untrained[n], *pair[:2]),
        "articles": ax,
        "la_wrong": wrong["la"],
        "la_all": often["la"],
        "la_ahead": ahead["la"],
        "ahead": ahead.total() / wrong.total(),
    }


def of_erasing():
    """A word taken away: from the model with attention, and from one without."""
    (model, vocabs), pairs = loaded("fr"), load_village("en", "fr")["test"]
    free, erased = (translate(model, text, *vocabs) for text in (HAT, ZZZ))
    assert free.tokens[0] == erased.tokens[0] == "le"
    assert free.source_tokens[free.attention_weights[0].argmax()] == "hat"
    weights = forced_weights(model, pairs[:300], vocabs)
    agree = [
        erasure(pair, model, vocabs).argmax(1) == w.argmax(1)
        for pair, w in zip(pairs[:300], weights, strict=True)
    ]
    fixed, vocabs = loaded("fr-fixed")
    pair, _ = beginning(pairs, MOUSE)
    assert translate(fixed, MOUSE, *vocabs).tokens[:-1] == [*pair.target]
    harm = erasure(pair, fixed, vocabs).clamp(min=1e-9)  # (T, S)
    harm /= harm.sum(dim=1, keepdim=True)
    title = "no attention: which word's erasure harms most"
    picture, right = with_gold(harm, pair, title=title)
    hits = {
        f"{name}_hits": mean(r["erased_gold"] for r in runs_of("choices", **arm))
        for name, arm in (
            ("untrained", {"arm": "untrained"}),
            ("fixed", {"arm": "fixed context", "num_epochs": 4}),
            ("attention", {"arm": "additive", "num_epochs": 4}),
        )
    }
    return hits | {
        "free": free.text,
        "free_map": heatmap_of(free),
        "erased": erased.text,
        "erased_map": heatmap_of(erased),
        "agree": torch.cat(agree).double().mean().item(),
        "fixed": picture,
        "fixed_source": detokenize(pair.source, "en"),
        "fixed_rows": len(pair.target),
        "fixed_right": right,
    }


def of_length():
    """Looks beyond the lengths of training."""
    (model, vocabs), corpus = loaded("fr"), load_village("en", "fr")
    pair, _ = beginning(corpus["long"], NEIGHBOUR)
    made = translate(model, " ".join(pair.source), *vocabs)
    assert "neighbour" in pair.source and "voisin" not in made.tokens
    runs = {
        most: runs_of("long_sentences", arm=f"attention, {most}", times=3)
        for most in (15, 30)
    }
    skips = {
        f"trained on up to {most} words": 100 * np.array([run["skips"] for run in own])
        for most, own in runs.items()
    }
    looks = [run["far_looks"] for run in runs[15]]
    ax = new_axes(3.4)
    plot_curves(LENGTHS, skips, "source words", "% that skip", ax, (0, 100))
    ax.legend(loc="upper left", frameon=False)
    return {
        "long_source": detokenize(pair.source, "en"),
        "long_text": made.text,
        "jump": heatmap_of(made),
        "gap": longest_gap(made.attention_weights),
        "length": len(pair.source),
        "longest": max(len(pair.source) for pair in corpus["train"]),
        "skips": ax,
        "far_short": mean(look["test"]["share"] for look in looks),
        "far_long": mean(look["long"]["share"] for look in looks),
        "far_ahead": mean(look["long"]["ahead"] for look in looks),
    }


def page():
    """What stands for the names in braces on the page: {name: number, text or Axes}."""
    torch.set_num_threads(1)  # small models: more threads only wait for each other
    real, *_ = stored("gold")["runs"]
    return {
        **of_reading(),
        **of_erasing(),
        **of_length(),
        "real_attention": real["attention"]["aer"],
        "real_diagonal": real["diagonal"]["aer"],
        "real_aligner": mean(run["aer"] for run in real["aligner"]),
    }
