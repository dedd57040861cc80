"""A small random model of every kind that decodes."""

import torch
from torch import nn

from utils.models import build_model

TWO = {"num_layers": 2}
OPTIONS = {  # name: kind, sizes beside the vocabularies', options
    "attention": ("attention", (4, 6), TWO),
    "fixed": ("fixed", (4, 6), TWO),
    "multi-head": ("attention", (4, 6), TWO | {"score": "multi-head", "num_heads": 2}),
    "transformer": ("transformer", (8, 2, 2, 9), {}),
    "rnnsearch": ("rnnsearch", (4, 6), {}),
    "released": ("rnnsearch", (4, 6), {"variant": "order of the released code"}),
    "luong": ("luong", (4, 6), TWO),
    "hierarchical": ("hierarchical", (4, 6), TWO),
    "window": ("window", (4, 6), TWO | {"reach": 1}),
    "local-m": ("local", (4, 6), TWO | {"reach": 1}),
    "local-p": ("local", (4, 6), TWO | {"reach": 2, "place": "predicted"}),
    "coverage": ("coverage", (4, 6), TWO),
    "translator": ("translator", (6, 8, 8), {"dropout": 0.1}),
    "released translator": ("released translator", (6, 8, 8), {"dropout": 0.1}),
    "fixed translator": ("fixed translator", (6, 8, 8), {"dropout": 0.1}),
}
TRANSLATORS = ("translator", "released translator", "fixed translator")
KINDS = tuple(name for name in OPTIONS if name not in TRANSLATORS)


def random_model(name, src_size, tgt_size=None, seed=0):
    """Large random weights: probabilities that are far from equal. In eval mode."""
    torch.manual_seed(seed)
    kind, sizes, options = OPTIONS[name]
    model = build_model(kind, src_size, tgt_size or src_size, *sizes, **options)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.8)
    return model.eval()
