"""Small models of the whole catalogue, and a batch for them."""

import pytest
import torch
from torch import nn

from utils.models import build_model
from utils.rnnsearch import VARIANTS

SOURCE_WORDS, TARGET_WORDS = 20, 13
SIZES = {"src_vocab_size": SOURCE_WORDS, "tgt_vocab_size": TARGET_WORDS}
GRU = {"embed_size": 3, "num_hiddens": 6}
DEEP = {**GRU, "num_layers": 2, "bidirectional": True, "enc_hiddens": 8}
TRANSLATOR = {**GRU, "enc_hiddens": 8, "dropout": 0.0}
# a name to read in a test's output: the kind, and its other values
CATALOGUE = {
    "attention": ("attention", DEEP),
    "attention, the defaults": ("attention", GRU),
    "dot": ("attention", {**GRU, "score": "dot"}),
    "scaled dot": ("attention", {**GRU, "score": "scaled dot"}),
    "general": ("attention", {**DEEP, "score": "general"}),
    "fixed": ("fixed", DEEP),
    "fixed, the defaults": ("fixed", GRU),
    "luong": ("luong", DEEP),
    "luong, context fed": ("luong", {**DEEP, "feed": "context"}),
    "luong, nothing fed": ("luong", {**DEEP, "feed": "nothing"}),
    "local-m": ("local", {**DEEP, "reach": 1}),
    "local-p": ("local", {**DEEP, "reach": 2, "place": "predicted"}),
    "luong, local-m": ("luong local", {**DEEP, "reach": 1, "score": "additive"}),
    "luong, local-p": ("luong local", {**DEEP, "reach": 2, "place": "predicted"}),
    "pointer": ("pointer", DEEP),
    "translator": ("translator", TRANSLATOR),
    "released translator": ("released translator", TRANSLATOR),
    "conditional translator": ("conditional translator", TRANSLATOR),
    "fixed translator": ("fixed translator", TRANSLATOR),
    "transformer": ("transformer", {"num_hiddens": 8, "num_heads": 2, "num_ffn": 5}),
    **{variant: ("rnnsearch", {**GRU, "variant": variant}) for variant in VARIANTS},
}
QUICK = "attention", "fixed", "luong", "local-m", "RNNsearch", "transformer"
every_model = pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CATALOGUE],
)


def a_model(name, **options):
    """A model of the CATALOGUE in double precision, its numbers large: none hides."""
    kind, values = CATALOGUE[name]
    return loud(build_model(kind, **{**SIZES, **values, **options}))


def random_model(name, vocab_size, seed=0):
    """A model of the CATALOGUE for another vocabulary; its weights are large."""
    torch.manual_seed(seed)
    kind, values = CATALOGUE[name]
    model = build_model(kind, vocab_size, vocab_size, **values)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.8)
    return model.eval()


def loud(model):
    """All parameters drawn anew: equal names and shapes get equal numbers."""
    for name, parameter in model.named_parameters():
        generator = torch.Generator().manual_seed(sum(map(ord, name)))
        nn.init.normal_(parameter, std=0.5, generator=generator)
    return model.double().eval()


def a_batch(seed=1):
    """Source (3, 5), target (3, 4), lengths; no source id stands twice."""
    generator = torch.Generator().manual_seed(seed)
    source = 4 + torch.randperm(15, generator=generator).view(3, 5)
    target = torch.randint(4, TARGET_WORDS, (3, 4), generator=generator)
    return source, target, torch.tensor([5, 3, 1])
