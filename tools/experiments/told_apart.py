"""Which runs of `real_text` are told apart: paired bootstrap over the validation split.

Koehn (2004). Each arm, at its own rate, against the control with as many epochs; and
the control against itself: with other seeds, and with the short budget. BLEU's tokens
are 13a, of small letters. From and to hold the middle 95 of 100 gains. A pair takes a
few seconds, and is compared when both are stored.
"""

import gzip
import json

from tools.experiments.provenance import read
from tools.experiments.real_text import ARMS, BUDGETS, name_of
from tools.experiments.tables import at_the_best_rate
from utils.metrics import bleu, gain_range, words_13a
from utils.slides import stored

SETTINGS = {"samples": 1000}


def plan(done):
    runs, (short, long), named = stored("real_text")["runs"], BUDGETS, {}
    runs = [e for e in runs if e["run"]["arm"] in ARMS and e["valid_loss"]]
    for about, entries in at_the_best_rate(runs):  # valid_loss is None: it diverged
        names = sorted(name_of(**entry["run"]) for entry in entries)  # by their seeds
        named[about["arm"], about["num_epochs"]] = names
    pairs = [(named["control", long][0], named["control", short][0])]
    for (arm, epochs), names in named.items():
        others = names[1:] if arm == "control" else names[:1]
        pairs += [(name, named["control", epochs][0]) for name in others]
    return [{"ours": ours, "theirs": theirs} for ours, theirs in pairs]


def run(settings, ours, theirs):
    """Gain in BLEU of ours over theirs, and its range on other such sentences."""
    files = (read(f"results/real_text/{name}.json.gz") for name in (ours, theirs))
    sides = [json.loads(gzip.decompress(f.read_bytes()))["valid"] for f in files]
    sides.append(read("Multi30k de-en").target_texts("valid"))
    sides = [[words_13a(text.lower()) for text in side] for side in sides]
    gain = bleu(sides[0], sides[2]) - bleu(sides[1], sides[2])
    low, high = gain_range(*sides, settings["samples"])
    return {"gain": round(gain, 2), "from": round(low, 2), "to": round(high, 2)}
