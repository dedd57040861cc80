"""A small random model of every kind that decodes, whatever builds it."""

from functools import partial

import torch
from torch import nn

from utils.models import build_model
from utils.seq2seq import EncoderDecoder, Seq2SeqEncoder
from utils.transformer import MultiHeadAttention
from utils.variants import HierarchicalDecoder, LuongDecoder, WindowDecoder

DECODERS = {
    "luong": LuongDecoder,
    "hierarchical": HierarchicalDecoder,
    "window": partial(WindowDecoder, reach=1),
}
RNNSEARCH = {"rnnsearch": "RNNsearch", "released": "order of the released code"}
TRANSLATORS = ("translator", "fixed translator")
KINDS = ("attention", "fixed", "multi-head", "transformer", *RNNSEARCH, *DECODERS)


def random_model(kind, src_size, tgt_size=None, seed=0):
    """Large random weights: probabilities that are far from equal. In eval mode."""
    torch.manual_seed(seed)
    sizes = src_size, tgt_size or src_size
    if kind in RNNSEARCH:
        model = build_model("rnnsearch", *sizes, 4, 6, variant=RNNSEARCH[kind])
    elif kind == "transformer":
        model = build_model("transformer", *sizes, 8, 2, 2, 9)
    elif kind in TRANSLATORS:
        model = build_model(kind, *sizes, 6, 8, 8, dropout=0.1)
    elif kind in DECODERS:
        encoder = Seq2SeqEncoder(sizes[0], 4, 6, num_layers=2)
        model = EncoderDecoder(encoder, DECODERS[kind](sizes[1], 4, 6, num_layers=2))
    else:
        model = build_model(
            "fixed" if kind == "fixed" else "attention", *sizes, 4, 6, num_layers=2
        )
    if kind == "multi-head":
        model.decoder.attention = MultiHeadAttention(6, 6, 6, 2)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.8)
    return model.eval()
