"""The catalogue: a name and plain values -> a model.

Every model of the course is built here, so that a file can store it by the values in
`model.config`, and `load_checkpoint` build it again. A model of your own joins by an
entry in KINDS: a function of the vocabularies' sizes and of plain values.
"""

import inspect
from functools import partial

from torch import nn

from utils import attention, seq2seq, variants
from utils import rnnsearch as paper
from utils import transformer as transformers
from utils import translator as translators
from utils.guards import require_one_of, require_share, require_whole
from utils.seq2seq import EncoderDecoder, Seq2SeqEncoder


def build_model(kind, *sizes, **options):
    """A model of the catalogue; `model.config` holds all that it was made from.

    kind: a key of KINDS. sizes, options: what the function there takes, all plain
    values; the vocabularies' sizes come first. Raises ValueError, in words, for an
    unknown kind, a size that can't be, or an option that this kind doesn't have.
    """
    require_one_of("kind", kind, KINDS)
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
    """ValueError, in words, for a value that no file holds, or no size."""
    if not isinstance(value, (bool, int, float, str, type(None))):
        raise ValueError(
            f"{name} must be a plain value, which a file can hold; got {value!r}"
        )
    sized = name.startswith("num_") or name.endswith(("_size", "_hiddens"))
    if sized and value is not None:
        require_whole(name, value)
    if name == "dropout":
        require_share(name, value)


def require_fit(model, src_vocab, tgt_vocab):
    """ValueError, in words, unless model and vocabularies can translate together."""
    for side, part, vocab in (
        ("source", model.encoder, src_vocab),
        ("target", model.decoder, tgt_vocab),
    ):
        size = part.embedding.num_embeddings
        if len(vocab) != size:
            raise ValueError(
                f"the {side} vocabulary has {len(vocab)} words, but the model was "
                f"built for {size}: give the vocabularies that it was trained with"
            )


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
    num_hiddens. options: score, a key of SCORES; and the decoder's own.
    """
    D = enc_hiddens or num_hiddens
    if "score" in options:
        require_one_of("score", score := options.pop("score"), SCORES)
        options["attention"] = SCORES[score](D, num_hiddens, dropout=dropout)
    sizes = num_layers, dropout
    size = direction_size(D, bidirectional)
    encoder_class = getattr(decoder_class, "encoder_class", Seq2SeqEncoder)
    encoder = encoder_class(src_vocab_size, embed_size, size, *sizes, bidirectional)
    sizes = tgt_vocab_size, embed_size, num_hiddens, *sizes, D
    return EncoderDecoder(encoder, decoder_class(*sizes, **options))


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
    embedding = translators.DropoutEmbedding(src_vocab_size, embed_size, dropout)
    encoder = Seq2SeqEncoder(0, embed_size, size, bidirectional=True)
    encoder.embedding = embedding
    sizes = tgt_vocab_size, embed_size, num_hiddens, dropout, enc_hiddens
    return EncoderDecoder(encoder, decoder_class(*sizes))


def rnnsearch(
    src_vocab_size,
    tgt_vocab_size,
    embed_size,
    num_hiddens,
    num_maxout=None,
    variant="RNNsearch",
):
    """RNNsearch (Bahdanau et al., 2015, appendix A), or one part of it replaced.

    num_hiddens: of the decoder and of each direction of the encoder, 1000 in the paper;
    embed_size 620 there; num_maxout 500 there, num_hiddens // 2 when None. variant: a
    key of VARIANTS there.
    """
    require_one_of("variant", variant, paper.VARIANTS)
    parts = paper.PAPER | paper.VARIANTS[variant]
    H, D, M = num_hiddens, 2 * num_hiddens, num_maxout or max(1, num_hiddens // 2)
    encoder = Seq2SeqEncoder(src_vocab_size, embed_size, H, bidirectional=True)
    decoder = parts["decoder"](
        nn.Embedding(tgt_vocab_size, embed_size),
        parts["start"](H, D),
        parts["attention"](D, H),
        parts["unit"](embed_size, H, D),
        parts["output"](tgt_vocab_size, embed_size, H, D, M),
    )
    return EncoderDecoder(encoder, decoder)


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
    transformers.head_size(num_hiddens, num_heads)
    if num_hiddens % 2:
        raise ValueError(f"num_hiddens must be even: sines, cosines; got {num_hiddens}")
    sizes = num_hiddens, num_heads, num_layers, num_ffn or 4 * num_hiddens, dropout
    encoder = transformers.TransformerEncoder(src_vocab_size, *sizes)
    decoder = transformers.TransformerDecoder(tgt_vocab_size, *sizes)
    return EncoderDecoder(encoder, decoder)


# Attention for keys of size D, queries of size H, and a dropout.
SCORES = {
    "additive": lambda D, H, dropout: attention.AdditiveAttention(D, H, H, dropout),
    "dot": attention.DotProductAttention,
    "scaled dot": partial(attention.DotProductAttention, scaled=True),
    "general": attention.BilinearAttention,
}
KINDS = {
    "attention": partial(recurrent, seq2seq.Seq2SeqAttentionDecoder),
    "fixed": partial(recurrent, seq2seq.Seq2SeqDecoder),
    "luong": partial(recurrent, variants.LuongDecoder),
    "local": partial(recurrent, variants.LocalDecoder),
    "luong local": partial(recurrent, variants.LuongLocalDecoder),
    "pointer": partial(recurrent, variants.PointerDecoder),
    "translator": partial(translator, translators.TranslatorDecoder),
    "released translator": partial(translator, translators.ReleasedTranslatorDecoder),
    "conditional translator": partial(
        translator, translators.ConditionalTranslatorDecoder
    ),
    "fixed translator": partial(translator, translators.FixedTranslatorDecoder),
    "rnnsearch": rnnsearch,
    "transformer": transformer,
}
