"""`make model`: train the small models that ship with the course, draw a heatmap.

Each is saved in data/models with its settings and its scores on the test split.
"""

from tools.experiments.provenance import DATA, READ, provenance
from tools.experiments.runs import SIZES, aer_of, bleu_of, build, trained, village
from utils.alignment import forced_weights
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.plotting import show_heatmap

FOLDER = DATA / "models"
SETTINGS = {**SIZES, "dropout": 0.0, "num_epochs": 6, "lr": 5e-3, "seed": 0}
# The model that notebook 02 trains, for those who come after it.
FIXED = {**SETTINGS, "bidirectional": False, "num_epochs": 3, "lr": 6e-3}


def train(direction, kind="attention", settings=SETTINGS):
    """Train, score and save one direction, by a kind of `utils.models`."""
    READ.clear()
    (corpus, vocabs), about = village(direction), {**settings, "kind": kind}
    model, test = build(vocabs, about), corpus["test"]
    figures = trained(model, corpus, vocabs, about)
    model.half().float()  # scored as it is stored
    figures["test_bleu"] = bleu_of(model, test, vocabs)
    if kind == "attention":
        figures["test_aer"] = aer_of(model, test, vocabs)
    notes = {
        "command": "make model",
        "corpus": f"Village {direction}",
        "settings": settings,
        **figures,
        **provenance(),
    }
    end = "" if kind == "attention" else f"-{kind}"
    path = FOLDER / f"village-{direction}{end}.safetensors"
    save_checkpoint(path, model.half(), *vocabs, notes=notes)  # a page loads it, too
    print(path.name, notes)


def draw_picture():
    """A test sentence: the first of 8 to 12 words with a swap and a negation."""
    model, *vocabs = load_checkpoint(FOLDER / "village-en-fr.safetensors")[:3]
    pair = next(
        pair
        for pair in village("en-fr")[0]["test"]
        if {"adj-swap", "ne-pas"} <= pair.tags and 8 <= len(pair.source) <= 12
    )
    (weights,) = forced_weights(model, [pair], vocabs)
    links = {"gold": pair.alignment, "possible": pair.possible}
    axes = show_heatmap(weights, pair.source, pair.target, **links)
    picture = DATA.parent / "notebooks" / "img" / "heatmap.png"
    axes.figure.savefig(picture, dpi=120, facecolor="white", bbox_inches="tight")


if __name__ == "__main__":
    for direction in ("en-fr", "en-zh"):
        train(direction)
    train("en-fr", "fixed", FIXED)
    draw_picture()
