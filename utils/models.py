"""The catalogue: a name and plain values -> a model.

Every model of the course is built here, so that a file can store it by the values in
`model.config`, and `load_checkpoint` build it again. A model of your own joins by an
entry in KINDS: a function of the vocabularies' sizes and of plain values.
"""

import inspect
from functools import partial

from torch import nn

from utils.attention import (
    AdditiveAttention,
    BilinearAttention,
    DotProductAttention,
)
from utils.rnnsearch import PAPER, VARIANTS, initialise
from utils.seq2seq import (
    EncoderDecoder,
    Seq2SeqAttentionDecoder,
    Seq2SeqDecoder,
    Seq2SeqEncoder,
)
from utils.transformer import (
    MultiHeadAttention,
    TransformerDecoder,
    TransformerEncoder,
    check_sizes,
)
from utils.translator import (
    DropoutEmbedding,
    FixedTranslatorDecoder,
    ReleasedTranslatorDecoder,
    TranslatorDecoder,
)
from utils.variants import (
    BottomQueryDecoder,
    ContextOutputDecoder,
    CoverageDecoder,
    HierarchicalDecoder,
    LocalDecoder,
    LocationAttention,
    LuongDecoder,
    WindowDecoder,
)


def build_model(kind, *sizes, **options):
    """A model of the catalogue; `model.config` holds all that it was made from.

    kind: a key of KINDS. sizes, options: what the function there takes, all plain
    values; the vocabularies' sizes come first. Raises ValueError, in words, for an
    unknown kind, a size that can't be, or an option that this kind doesn't have.
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind must be one of {sorted(KINDS)}, got {kind!r}")
    signature = inspect.signature(KINDS[kind])
    try:
        given = signature.bind(*sizes, **options)
        given.apply_defaults()
        config = dict(given.arguments)
        config.update(config.pop("options", {}))
        for name, value in config.items():
            require_value(name, value)
        model = KINDS[kind](**config)
    except TypeError as error:
        names = ", ".join(signature.parameters)
        raise ValueError(f"kind {kind!r} takes {names}: {error}") from error
    model.config = {"kind": kind, **config}
    return model


def require_value(name, value):
    """ValueError, in words, for a size that can't be, a share out of range, a part."""
    if not isinstance(value, (bool, int, float, str, type(None))):
        raise ValueError(
            f"{name} must be a plain value, which a file can hold; got {value!r}"
        )
    if name in ("bidirectional", "published_init") and not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    sized = name.startswith("num_") or name.endswith(("_size", "_hiddens"))
    whole = isinstance(value, int) and not isinstance(value, bool)
    if sized and value is not None and not (whole and value >= 1):
        raise ValueError(f"{name} must be a whole number from 1, got {value!r}")
    share = isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "dropout" and not (share and 0 <= value < 1):
        raise ValueError(f"dropout must be at least 0 and below 1, got {value!r}")


def recurrent(
    decoder_class,
    src_vocab_size,
    tgt_vocab_size,
    embed_size,
    num_hiddens,
    num_layers=1,
    dropout=0.0,
    bidirectional=False,
    enc_hiddens=None,
    **options,
):
    """A GRU encoder, and a decoder of `seq2seq` or `variants`.

    enc_hiddens: size of the encoder's states, both directions together; None for
    num_hiddens. options: score, which `build_attention` names, with num_positions or
    num_heads where it needs them; and the decoder's own.
    """
    D = enc_hiddens or num_hiddens
    if "score" in options:
        options["attention"] = build_attention(
            options.pop("score"),
            D,
            num_hiddens,
            dropout,
            options.pop("num_positions", None),
            options.pop("num_heads", None),
        )
    sizes = num_layers, dropout
    size = direction_size(D, bidirectional)
    encoder = Seq2SeqEncoder(src_vocab_size, embed_size, size, *sizes, bidirectional)
    sizes = tgt_vocab_size, embed_size, num_hiddens, *sizes, D
    return EncoderDecoder(encoder, decoder_class(*sizes, **options))


def build_attention(score, D, H, dropout, num_positions=None, num_heads=None):
    """The attention named score, for keys of size D and queries of size H."""
    needed = {"location": "num_positions", "multi-head": "num_heads"}.get(score)
    if needed and {"location": num_positions, "multi-head": num_heads}[score] is None:
        raise ValueError(f"the score {score!r} needs {needed}")
    if score == "additive":
        return AdditiveAttention(D, H, H, dropout)
    if score in ("dot", "scaled dot"):
        return DotProductAttention(D, H, score == "scaled dot", dropout)
    if score == "general":
        return BilinearAttention(D, H, dropout=dropout)
    if score == "location":
        return LocationAttention(D, H, num_positions, dropout)
    if score == "multi-head":
        return MultiHeadAttention(D, H, D, num_heads, dropout)
    known = "additive, dot, scaled dot, general, location, multi-head"
    raise ValueError(f"score must be one of {known}, got {score!r}")


def direction_size(enc_hiddens, bidirectional):
    """Size of one direction of the encoder; ValueError if two can't share it."""
    if bidirectional and enc_hiddens % 2:
        raise ValueError(
            f"a bidirectional encoder needs an even size, got {enc_hiddens}"
        )
    return enc_hiddens // (1 + bidirectional)


def translator(
    decoder_class,
    src_vocab_size,
    tgt_vocab_size,
    embed_size,
    num_hiddens,
    enc_hiddens,
    dropout,
):
    """A model for real text: dropout, a readout, one matrix to read and write words."""
    size = direction_size(enc_hiddens, bidirectional=True)
    embedding = DropoutEmbedding(src_vocab_size, embed_size, dropout)
    encoder = Seq2SeqEncoder(
        src_vocab_size, embed_size, size, bidirectional=True, embedding=embedding
    )
    sizes = tgt_vocab_size, embed_size, num_hiddens, dropout, enc_hiddens
    return EncoderDecoder(encoder, decoder_class(*sizes))


def rnnsearch(
    src_vocab_size,
    tgt_vocab_size,
    embed_size,
    num_hiddens,
    num_maxout=None,
    variant="RNNsearch",
    published_init=False,
):
    """RNNsearch (Bahdanau et al., 2015, appendix A), or one part of it replaced.

    num_hiddens: of the decoder and of each direction of the encoder, 1000 in the paper;
    embed_size 620 there; num_maxout 500 there, num_hiddens // 2 when None. variant: a
    key of VARIANTS. published_init: parameters drawn as the paper did (B.1).
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant must be one of {list(VARIANTS)}, got {variant!r}")
    parts = PAPER | VARIANTS[variant]
    H, D, both = num_hiddens, num_hiddens * parts["width"], parts["bidirectional"]
    size, num_maxout = direction_size(D, both), num_maxout or max(1, H // 2)
    encoder = Seq2SeqEncoder(src_vocab_size, embed_size, size, bidirectional=both)
    decoder = parts["decoder"](
        nn.Embedding(tgt_vocab_size, embed_size),
        parts["start"](H, D),
        AdditiveAttention(D, H, H),
        parts["unit"](embed_size, H, D),
        parts["output"](tgt_vocab_size, embed_size, H, D, num_maxout),
    )
    model = EncoderDecoder(encoder, decoder)
    return initialise(model) if published_init else model


def transformer(
    src_vocab_size,
    tgt_vocab_size,
    num_hiddens,
    num_heads=4,
    num_layers=2,
    num_ffn=None,
    dropout=0.0,
):
    """A Transformer (Vaswani et al., 2017).

    num_ffn: units between the two linear maps, 4 * num_hiddens when None as in the
    paper. num_hiddens is even, and the heads can share it out evenly.
    """
    sizes = num_hiddens, num_heads, num_layers, num_ffn or 4 * num_hiddens, dropout
    check_sizes(num_hiddens, num_heads)
    encoder = TransformerEncoder(src_vocab_size, *sizes)
    return EncoderDecoder(encoder, TransformerDecoder(tgt_vocab_size, *sizes))


KINDS = {
    "attention": partial(recurrent, Seq2SeqAttentionDecoder),
    "fixed": partial(recurrent, Seq2SeqDecoder),
    "luong": partial(recurrent, LuongDecoder),
    "context output": partial(recurrent, ContextOutputDecoder),
    "bottom query": partial(recurrent, BottomQueryDecoder),
    "hierarchical": partial(recurrent, HierarchicalDecoder),
    "window": partial(recurrent, WindowDecoder),
    "local": partial(recurrent, LocalDecoder),
    "coverage": partial(recurrent, CoverageDecoder),
    "translator": partial(translator, TranslatorDecoder),
    "released translator": partial(translator, ReleasedTranslatorDecoder),
    "fixed translator": partial(translator, FixedTranslatorDecoder),
    "rnnsearch": rnnsearch,
    "transformer": transformer,
}
