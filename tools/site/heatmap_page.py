"""Numbers and pictures of the page "Is the heatmap right?", from models and results.

pages/is_the_heatmap_right.md has their names in braces. Everything is computed anew
from the shipped models, or read from data/results. A sentence on the page that is said
of one model's words has an assertion here: `make site` fails if it no longer holds.
"""

import json
from collections import Counter
from pathlib import Path
from statistics import mean, mode

import matplotlib.pyplot as plt
import numpy as np
import torch

from tools.experiments.choices import erasure
from utils.alignment import forced_weights, longest_gap
from utils.checkpoint import load_checkpoint
from utils.corpora import load_village
from utils.data import text_of
from utils.decoding import translate
from utils.gold import gold_links
from utils.metrics import (
    alignment_error_rate,
    diagonal_links,
    links_from_weights,
    random_links,
)
from utils.models import build_model
from utils.plotting import plot_curves, show_heatmap

DATA = Path(__file__).resolve().parents[2] / "data"
COLOURS = "#0072B2", "#D55E00", "#999999"
HAT = "The old hat is not blue."
ARTICLES = "la le à de qu' .".split()  # and others whose looks the page draws


def loaded(name):
    """A shipped model and its two vocabularies."""
    model, *vocabs = load_checkpoint(DATA / "models" / f"{name}.safetensors")[:3]
    return model, vocabs


def stored(name, **arm):
    """The stored runs of an arm, one of each seed, at the arm's own learning rate."""
    runs = json.loads((DATA / "results" / f"{name}.json").read_text("utf-8"))["runs"]
    own = [run for run in runs if all(run["run"].get(k) == arm[k] for k in arm)]
    rate = mode(run["run"].get("lr") for run in own)
    return [run for run in own if run["run"].get("lr") == rate]


def percent(share):
    return f"{100 * share:.0f}"


def error_rates(pairs, weights):
    """How wrong links are, {whose: rate}; weights: {whose: those of each pair}."""
    links = {name: map(links_from_weights, all_of) for name, all_of in weights.items()}
    sizes, rng = (
        [(len(p.source), len(p.target)) for p in pairs],
        np.random.default_rng(0),
    )
    links["diagonal"] = (diagonal_links(*size) for size in sizes)
    links["chance"] = (random_links(*size, rng) for size in sizes)
    gold = gold_links(pairs)
    return {n: alignment_error_rate(list(own), *gold).aer for n, own in links.items()}


def wrong_looks(pairs, weights):
    """Of each wrong link: its target word; where the model looked, as in 07."""
    for pair, w in zip(pairs, weights, strict=True):
        gold = pair.alignment | pair.possible
        for j, i in links_from_weights(w) - gold:
            ahead, behind = (
                (j, i + d) in gold or (j, i + 2 * d) in gold for d in (1, -1)
            )
            yield (
                pair.target[i],
                "ahead" if ahead else "behind" if behind else "elsewhere",
            )


def bars(ax, names, parts, title=None):
    """Lying bars; parts: {label: sizes}, one after the other."""
    left = np.zeros(len(names))
    for (label, sizes), colour in zip(parts.items(), COLOURS, strict=False):
        ax.barh(names, sizes, left=left, color=colour, label=label)
        left += sizes
    ax.invert_yaxis()
    ax.set_title(title, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def gold_of(pair):
    return {"gold": pair.alignment, "possible": pair.possible}


def reading(found):
    """One sentence's picture, gold, an untrained model; then a thousand sentences."""
    (model, vocabs), pairs = loaded("village-en-fr"), load_village("en", "fr")["test"]
    torch.manual_seed(0)
    untrained = build_model(**model.config)
    weights = {
        "attention": forced_weights(model, pairs, vocabs),
        "untrained": forced_weights(untrained, pairs, vocabs),
    }
    ours = weights["attention"]
    weights["shuffled"] = [w[:, torch.randperm(w.shape[1])] for w in ours]
    pair, n = next(
        (pair, n)
        for n, pair in enumerate(pairs)
        if {"adj-swap", "ne-pas"} <= pair.tags and len(pair.source) <= 11
    )
    assert pair.target[-3:] == ("porte", "bleue", "."), "the page names these words"
    yield "reading", show_heatmap(ours[n], pair.source, pair.target)
    yield "gold", show_heatmap(ours[n], pair.source, pair.target, **gold_of(pair))
    yield "nothing", show_heatmap(weights["untrained"][n], pair.source, pair.target)
    found |= {"source": text_of(pair.source, "en")}
    found |= {"target": text_of(pair.target, "fr")}
    right = links_from_weights(ours[n]) & (pair.alignment | pair.possible)
    found |= {
        "right": len(right),
        "rows": len(pair.target),
        "columns": len(pair.source),
    }

    rates = {"French": error_rates(pairs, weights)}
    (model, vocabs), chinese = loaded("village-en-zh"), load_village("en", "zh")["test"]
    weights = {"attention": forced_weights(model, chinese, vocabs)}
    rates["Chinese"] = error_rates(chinese, weights)
    _, axes = plt.subplots(
        2, figsize=(6, 3.6), sharex=True, layout="constrained", height_ratios=(5, 3)
    )
    for ax, (language, rate) in zip(axes, rates.items(), strict=True):
        found |= {f"{name}_{language}": f"{aer:.2f}" for name, aer in rate.items()}
        bars(ax, list(rate), {"": list(rate.values())}, f"English to {language}")
    ax.set_xlabel("alignment error rate")
    yield "rates", ax

    looks = Counter(wrong_looks(pairs, ours))
    words = Counter(word for pair in pairs for word in pair.target)
    ways = "ahead", "behind", "elsewhere"
    of = {word: [looks[word, way] for way in ways] for word in ARTICLES}
    names = [f"{word} ({sum(n)} of {words[word]})" for word, n in of.items()]
    _, ax = plt.subplots(figsize=(6, 3), layout="constrained")
    parts = dict(zip(ways, zip(*of.values(), strict=True), strict=True))
    bars(ax, names, parts).set_xlabel("wrong links")
    ax.legend(frameon=False)
    yield "articles", ax
    found |= {"la_wrong": sum(of["la"]), "la_all": words["la"], "la_ahead": of["la"][0]}
    for way in ways:
        share = sum(n for (_, to), n in looks.items() if to == way) / looks.total()
        found[way] = percent(share)


def erasing(found):
    """A word taken away: from the model with attention, and from one without."""
    (model, vocabs), pairs = loaded("village-en-fr"), load_village("en", "fr")["test"]
    for name, text in (("free", HAT), ("erased", HAT.replace("hat", "zzz"))):
        made = translate(model, text, *vocabs)
        look = made.source_tokens[made.attention_weights[0].argmax()]
        assert made.tokens[0] == "le" and (look == "hat" or name == "erased")
        found[name] = made.text
        ax = show_heatmap(made.attention_weights, made.source_tokens, made.tokens)
        yield f"{name}_map", ax
    some = pairs[:300]
    weights, harm = forced_weights(model, some, vocabs), []
    for pair, w in zip(some, weights, strict=True):
        harm.append(erasure(pair, model, vocabs).argmax(1) == w.argmax(1))
    found["agree"] = percent(torch.cat(harm).double().mean().item())

    fixed, vocabs = loaded("village-en-fr-fixed")
    pair = next(
        pair
        for pair in pairs
        if "adj-swap" in pair.tags
        and len(pair.source) <= 9
        and translate(fixed, " ".join(pair.source), *vocabs).tokens[:-1]
        == list(pair.target)
    )
    drop = erasure(pair, fixed, vocabs).clamp(min=1e-9)  # (T, S)
    share = drop / drop.sum(dim=1, keepdim=True)
    title = "no attention: which word's erasure harms most"
    yield (
        "fixed",
        show_heatmap(share, pair.source, pair.target, title=title, **gold_of(pair)),
    )
    right = links_from_weights(share) & (pair.alignment | pair.possible)
    found |= {"fixed_right": len(right), "fixed_rows": len(pair.target)}
    found["fixed_source"] = text_of(pair.source, "en")
    for name, arm, epochs in (
        ("control", "untrained", None),
        ("fixed", "fixed context", 4),
        ("attended", "additive", 4),
    ):
        runs = stored("choices", arm=arm, num_epochs=epochs)
        found[f"{name}_hits"] = percent(mean(run["erased_gold"] for run in runs))


def long_sentences(found):
    """Looks beyond the lengths of training."""
    (model, vocabs), corpus = loaded("village-en-fr"), load_village("en", "fr")
    for pair in corpus["long"]:
        made = translate(model, " ".join(pair.source), *vocabs)
        if longest_gap(made.attention_weights) >= 8 and made.tokens[-1] == "<eos>":
            break
    yield "jump", show_heatmap(made.attention_weights, made.source_tokens, made.tokens)
    assert "neighbour" in pair.source and "voisin" not in made.tokens
    found |= {"long_source": text_of(pair.source, "en"), "long_text": made.text}
    found["longest"] = max(len(pair.source) for pair in corpus["train"])
    found |= {"length": len(pair.source), "gap": longest_gap(made.attention_weights)}
    labels = "3–6 7–10 11–15 16–20 21–25 26–30 31–40 41–50 51–57".split()
    curves = {}
    for most in (15, 30):
        runs = stored("long_sentences", arm=f"attention, {most}", times=3)
        name = f"trained on up to {most} words"
        curves[name] = [[100 * share for share in run["skips"]] for run in runs]
        for split in ("test", "long"):
            for what in ("share", "ahead"):
                shares = [run["far_looks"][split][what] for run in runs]
                found[f"{what}_{most}_{split}"] = percent(mean(shares))
    _, ax = plt.subplots(figsize=(6, 3.4), layout="constrained", facecolor="white")
    plot_curves(labels, curves, "source words", "% that skip", ax, (0, 100))
    ax.legend(loc="upper left", frameon=False)
    yield "skips", ax


def page():
    """What stands for the names in braces: {name: text}, and {name: Figure}."""
    torch.set_num_threads(1)  # small models: more threads only wait for each other
    found, pictures = {}, {}
    for part in (reading, erasing, long_sentences):
        pictures |= {name: ax.figure for name, ax in part(found)}
    real, *_ = json.loads((DATA / "results/gold.json").read_text("utf-8"))["runs"]
    aligner = mean(run["forward"]["aer"] for run in real["aligner"])
    found["real_aligner"] = f"{aligner:.2f}"
    for name in ("diagonal", "attention"):
        found[f"real_{name}"] = f"{real[name]['aer']:.2f}"
    return found, pictures
