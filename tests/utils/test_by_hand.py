"""utils.by_hand: the same losses and gradients as the plain route, to rounding."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from utils import by_hand
from utils.data import Batch
from utils.models import build_model
from utils.seq2seq import Seq2SeqAttentionDecoder
from utils.text import PAD_ID
from utils.training import batch_loss, masked_cross_entropy
from utils.variants import TranslatorDecoder


def random_batch(seed, B=4, S=6, T=5, V=11):
    generator = torch.Generator().manual_seed(seed)

    def ids(*shape):
        return torch.randint(4, V, shape, generator=generator)

    def lengths(longest):
        lens = torch.randint(1, longest + 1, (B,), generator=generator)
        lens[0] = longest
        return lens

    source_lens, target_lens = lengths(S), lengths(T)
    source, target_in, target_out = ids(B, S), ids(B, T), ids(B, T)
    source[torch.arange(S) >= source_lens[:, None]] = 0
    for target in (target_in, target_out):
        target[torch.arange(T) >= target_lens[:, None]] = 0
    return Batch(source, source_lens, target_in, target_out, target_lens)


def plain_loss(model, batch, label_smoothing=0.0):
    scores, _ = model(batch.source, batch.target_in, batch.source_lens)
    if label_smoothing == 0:
        return masked_cross_entropy(scores, batch.target_out)
    real = batch.target_out != PAD_ID
    return F.cross_entropy(
        scores[real], batch.target_out[real], label_smoothing=label_smoothing
    )


def losses_and_gradients(model, batch, label_smoothing=0.0):
    """(loss, {name: gradient}) by the plain route and by the fast one."""
    both = []
    for route in (plain_loss, by_hand.loss):
        model.zero_grad()
        loss = route(model, batch, label_smoothing)
        loss.backward()
        gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
        both.append((loss.item(), gradients))
    return both


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(["attention", "fixed"]),
    bidirectional=st.booleans(),
    enc_hiddens=st.sampled_from([None, 10]),
    B=st.integers(1, 5),
    S=st.integers(1, 7),
    T=st.integers(1, 7),
    seed=st.integers(0, 1000),
)
def test_loss_and_gradients_are_those_of_the_plain_route(
    kind, bidirectional, enc_hiddens, B, S, T, seed
):
    torch.manual_seed(seed)
    model = build_model(
        kind, 11, 13, 3, 6, bidirectional=bidirectional, enc_hiddens=enc_hiddens
    ).double()
    batch = random_batch(seed, B, S, T)
    (loss, gradients), (fast_loss, fast_gradients) = losses_and_gradients(model, batch)
    assert fast_loss == pytest.approx(loss, abs=1e-12)
    for name, gradient in gradients.items():
        torch.testing.assert_close(
            fast_gradients[name], gradient, atol=1e-12, rtol=1e-9, msg=name
        )


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(["translator", "fixed translator"]),
    enc_hiddens=st.sampled_from([6, 10]),  # with and without a map to H = 6
    label_smoothing=st.sampled_from([0.0, 0.1, 0.7]),
    B=st.integers(1, 5),
    S=st.integers(1, 7),
    T=st.integers(1, 7),
    seed=st.integers(0, 1000),
)
def test_a_translators_loss_and_gradients_are_those_of_the_plain_route(
    kind, enc_hiddens, label_smoothing, B, S, T, seed
):
    torch.manual_seed(seed)
    model = build_model(kind, 11, 13, 3, 6, enc_hiddens, dropout=0.0).double()
    batch = random_batch(seed, B, S, T)
    (loss, gradients), (fast_loss, fast_gradients) = losses_and_gradients(
        model, batch, label_smoothing
    )
    assert fast_loss == pytest.approx(loss, abs=1e-12)
    for name, gradient in gradients.items():
        torch.testing.assert_close(
            fast_gradients[name], gradient, atol=1e-12, rtol=1e-9, msg=name
        )


def any_model(kind, dropout=0.0):
    torch.manual_seed(0)
    if "translator" in kind:
        return build_model(kind, 11, 13, 3, 6, 10, dropout).double()
    return build_model(kind, 11, 13, 3, 6, bidirectional=True).double()


KINDS = ["attention", "fixed", "translator", "fixed translator"]


@pytest.mark.parametrize("kind", KINDS)
def test_padding_adds_nothing(kind):
    model, batch = any_model(kind), random_batch(8)
    wider = batch._replace(
        source=F.pad(batch.source, (0, 3)),
        target_in=F.pad(batch.target_in, (0, 2)),
        target_out=F.pad(batch.target_out, (0, 2)),
    )
    found = []
    for each in (batch, wider):
        model.zero_grad()
        loss = by_hand.loss(model, each, 0.1)
        loss.backward()
        found.append([loss.detach(), *(p.grad.clone() for p in model.parameters())])
    torch.testing.assert_close(found[1], found[0], atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS[2:])
def test_dropout_is_active_in_training_only(kind):
    model, batch = any_model(kind, dropout=0.4), random_batch(9)
    assert len({by_hand.loss(model, batch).item() for _ in range(5)}) == 5
    model.eval()
    exact = plain_loss(model, batch).item()
    for _ in range(2):
        assert by_hand.loss(model, batch).item() == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS[2:])
def test_dropout_acts_in_the_places_where_the_plain_route_has_it(kind, monkeypatch):
    """Seen with a dropout without chance: it scales every number."""

    def scaled(x, p, training, inplace=False):
        return x * (1 - p) if training else x

    model, batch = any_model(kind, dropout=0.4), random_batch(9)
    without = plain_loss(model.eval(), batch).item()
    monkeypatch.setattr(F, "dropout", scaled)
    loss = plain_loss(model.train(), batch).item()
    assert abs(loss - without) > 1e-4
    assert by_hand.loss(model, batch).item() == pytest.approx(loss, abs=1e-12)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["attention", "translator"])
def test_a_large_vocabulary_is_taken_in_pieces_and_gives_the_same(
    kind, label_smoothing
):
    torch.manual_seed(0)
    if kind == "attention":
        model = build_model("attention", 50, 2500, 8, 16, bidirectional=True)
    else:
        model = build_model("translator", 50, 2500, 8, 16, 16, dropout=0.0)
    batch = random_batch(0, B=100, S=9, T=12, V=50)
    assert (batch.target_out != 0).sum() > 512  # more than one piece
    (loss, gradients), (fast_loss, fast_gradients) = losses_and_gradients(
        model, batch, label_smoothing
    )
    assert fast_loss == pytest.approx(loss, rel=1e-6)
    for name, gradient in gradients.items():
        scale = gradient.abs().max()
        assert (fast_gradients[name] - gradient).abs().max() < 1e-5 * scale, name


def gru_arguments():
    torch.manual_seed(1)
    T, N, B, H = 4, 2, 3, 5
    shapes = [(T, N, B, 3 * H), (N, B, H), (N, 3 * H, H), (N, 3 * H)]
    return [torch.randn(shape, dtype=torch.double) for shape in shapes]


def attention_arguments():
    torch.manual_seed(2)
    counts = [3, 3, 2, 1]
    P, B, S, H, D = sum(counts), 3, 5, 2, 6
    shapes = {
        "gates": (P, 3 * H),
        "s": (B, H),
        "keys": (B, S, H),
        "values": (B, S, D),
        "mask": (B, S),
        "W_c": (3 * H, D),
        "W_s": (4 * H, H),
        "b_s": (4 * H,),
        "v": (H,),
    }
    arguments = {k: torch.randn(v, dtype=torch.double) for k, v in shapes.items()}
    lens = torch.tensor([5, 1, 3])
    arguments["mask"] = torch.zeros(B, S, dtype=torch.double).masked_fill(
        torch.arange(S) >= lens[:, None], -torch.inf
    )
    return {**arguments, "counts": counts}


def with_gradient(arguments, names=None):
    for i, argument in enumerate(arguments):
        if names is None or names[i] not in ("mask", "counts"):
            argument.requires_grad_()
    return tuple(arguments)


def check_gru():
    return torch.autograd.gradcheck(
        by_hand.GRUSteps.apply, with_gradient(gru_arguments()), raise_exception=False
    )


def check_attention():
    arguments = attention_arguments()
    return torch.autograd.gradcheck(
        lambda *a: by_hand.AttentionSteps.apply(*a)[:2],  # states and contexts
        with_gradient(list(arguments.values()), list(arguments)),
        raise_exception=False,
    )


def test_the_backward_passes_are_right_to_finite_differences():
    assert check_gru()
    assert check_attention()


@pytest.mark.parametrize("wrong", range(5))
def test_a_wrong_slope_is_caught(monkeypatch, wrong):
    """The check above can fail: any one of the five factors, scaled, fails it."""
    right = by_hand.gru_slopes

    def slopes(*arguments):
        return [1.1 * x if i == wrong else x for i, x in enumerate(right(*arguments))]

    monkeypatch.setattr(by_hand, "gru_slopes", slopes)
    assert not check_gru()
    assert not check_attention()


def test_a_gradient_that_forgets_the_contexts_is_caught(monkeypatch):
    right = by_hand.attention_steps_backward

    def without(d_states, d_contexts, *saved):
        return right(d_states, torch.zeros_like(d_contexts), *saved)

    monkeypatch.setattr(by_hand, "attention_steps_backward", without)
    assert not check_attention()


def test_the_contexts_are_the_weighted_values_and_change_no_state():
    arguments = attention_arguments()
    states, contexts, weights = by_hand.AttentionSteps.apply(*arguments.values())
    sentence = [i for n in arguments["counts"] for i in range(n)]
    values = arguments["values"][sentence]
    torch.testing.assert_close(contexts, torch.einsum("ps,psd->pd", weights, values))
    assert states.shape == (9, 2) and contexts.shape == (9, 6)


def test_a_sentence_that_has_ended_changes_no_other():
    """A short sentence beside long ones, and the same one alone."""
    arguments = attention_arguments()
    together = by_hand.AttentionSteps.apply(*arguments.values())
    rows = [0, 3, 6, 8]  # of the first sentence, which writes at each step
    alone = {
        name: x[rows] if name == "gates" else x[:1]
        for name, x in arguments.items()
        if name in ("gates", "s", "keys", "values", "mask")
    }
    alone = {**arguments, **alone, "counts": [1] * 4}
    alone = by_hand.AttentionSteps.apply(*alone.values())
    for whole, part in zip(together, alone, strict=True):
        torch.testing.assert_close(whole[rows], part)


def test_rows_by_step():
    rows = torch.arange(1.0, 7).view(6, 1)
    assert by_hand.by_step(rows, [3, 2, 1], 4)[..., 0].tolist() == [
        [1, 2, 3, 0],
        [4, 5, 0, 0],
        [6, 0, 0, 0],
    ]


def test_padding_gets_no_gradient_and_no_weight():
    arguments = attention_arguments()
    with_gradient(list(arguments.values()), list(arguments))
    states, contexts, weights = by_hand.AttentionSteps.apply(*arguments.values())
    (states.pow(2).sum() + contexts.pow(2).sum()).backward()
    padding = torch.isinf(arguments["mask"])  # (B, S)
    assert padding.any()
    weights = by_hand.by_step(weights, arguments["counts"], 3)
    assert (weights[:, padding] == 0).all()
    assert (arguments["keys"].grad[padding] == 0).all()
    assert (arguments["values"].grad[padding] == 0).all()
    assert (arguments["values"].grad[~padding] != 0).all()


def test_no_argument_is_changed():
    for function, arguments in (
        (by_hand.GRUSteps, gru_arguments()),
        (by_hand.AttentionSteps, list(attention_arguments().values())),
    ):
        tensors = [a for a in arguments if torch.is_tensor(a)]
        before = [argument.clone() for argument in tensors]
        out = function.apply(*with_gradient(arguments[:1]), *arguments[1:])
        (out if torch.is_tensor(out) else out[0]).sum().backward()
        for argument, copy in zip(tensors, before, strict=True):
            assert torch.equal(argument, copy)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_encoder_states_are_the_encoders(bidirectional):
    torch.manual_seed(3)
    model = build_model("attention", 11, 11, 3, 6, bidirectional=bidirectional)
    batch = random_batch(3)
    outputs, last = by_hand.encoder_states(
        model.encoder, batch.source, batch.source_lens
    )
    expected, hidden_state = model.encoder(batch.source, batch.source_lens)
    torch.testing.assert_close(outputs, expected)
    torch.testing.assert_close(last, hidden_state[-1])
    padding = torch.arange(outputs.shape[1]) >= batch.source_lens[:, None]
    assert padding.any() and (outputs[padding] == 0).all()


@pytest.mark.parametrize("kind", ["attention", "translator"])
def test_the_weights_can_be_read_afterwards(kind):
    model = any_model(kind)
    batch = random_batch(4)
    plain_loss(model, batch)
    expected = model.decoder.attention_weights
    by_hand.loss(model, batch)
    real = batch.target_out != PAD_ID  # in the batch's order, not by length
    found = model.decoder.attention_weights
    assert (batch.target_lens.diff() > 0).any()
    torch.testing.assert_close(found[real], expected[real])
    assert not real.all() and (found[~real] == 0).all()
    assert not model.decoder.attention_weights.requires_grad


class OwnDecoder(Seq2SeqAttentionDecoder):
    """A learner's variation."""


class OwnTranslatorDecoder(TranslatorDecoder):
    """Another one."""


class OwnEmbedding(torch.nn.Embedding):
    """And one more."""


def test_it_knows_only_what_it_computes():
    def model(**changes):
        return build_model("attention", 11, 11, 3, 6, **changes)

    assert by_hand.knows(model()) and by_hand.knows(model(bidirectional=True))
    assert by_hand.knows(build_model("fixed", 11, 11, 3, 6))
    assert not by_hand.knows(model(num_layers=2))
    assert not by_hand.knows(model(dropout=0.1))
    assert by_hand.knows(model(dropout=0.1).eval())
    changed = model()
    changed.decoder = OwnDecoder(11, 3, 6)
    assert not by_hand.knows(changed)
    for kind in ("translator", "fixed translator"):
        assert by_hand.knows(any_model(kind, dropout=0.3))
    changed = any_model("translator")
    changed.decoder = OwnTranslatorDecoder(11, 3, 6, 0.0, 10)
    assert not by_hand.knows(changed)
    changed = model()
    changed.encoder.embedding = OwnEmbedding(11, 3)
    assert not by_hand.knows(changed)
    changed = model()
    changed.encoder.extra = torch.nn.Identity()  # a new part changes nothing ...
    assert by_hand.knows(changed)
    changed.encoder = torch.nn.Sequential(changed.encoder)  # ... another class does
    assert not by_hand.knows(changed)


def test_what_it_does_not_know_takes_the_plain_route():
    torch.manual_seed(5)
    model, batch = build_model("attention", 11, 11, 3, 6, num_layers=2), random_batch(5)
    torch.testing.assert_close(batch_loss(model, batch), plain_loss(model, batch))


def test_bad_input_is_refused_in_words():
    model, batch = build_model("attention", 11, 11, 3, 6), random_batch(6)
    with pytest.raises(ValueError, match="every target is padding"):
        by_hand.loss(
            model, batch._replace(target_out=torch.zeros_like(batch.target_out))
        )
    with pytest.raises(ValueError, match="the vocabulary has ids 0 to 10"):
        by_hand.loss(model, batch._replace(target_in=batch.target_in + 11 - 4))
    with pytest.raises(ValueError, match="every source length must lie"):
        by_hand.loss(model, batch._replace(source_lens=batch.source_lens + 1))


def test_padding_between_words_is_left_out_as_the_plain_route_does():
    model, batch = any_model("attention"), random_batch(7)
    batch.target_out[0, 1:3] = PAD_ID
    (loss, gradients), (fast_loss, fast_gradients) = losses_and_gradients(model, batch)
    assert fast_loss == pytest.approx(loss, abs=1e-12)
    torch.testing.assert_close(fast_gradients, gradients)


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_without_a_word_changes_nothing(kind):
    model, batch = any_model(kind), random_batch(7)
    batch.target_out[2], batch.target_in[2] = PAD_ID, PAD_ID
    (loss, gradients), (fast_loss, fast_gradients) = losses_and_gradients(model, batch)
    assert fast_loss == pytest.approx(loss, abs=1e-12)
    torch.testing.assert_close(fast_gradients, gradients)
