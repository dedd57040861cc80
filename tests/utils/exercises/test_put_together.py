"""The last exercise of notebook 06 names the piece that is wrong, and survives it."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from utils import exercises
from utils.exercises import put_together as own

E, H = 8, 16


def masked_softmax(scores, lens):
    mask = torch.arange(scores.shape[2]) < lens[:, None, None]
    return scores.masked_fill(~mask, -1e30).softmax(dim=2)


class Right(nn.Module):
    """As the solution, in parts that a test can put a wrong one in place of."""

    def __init__(self):
        super().__init__()
        src_size, tgt_size = map(len, own.held_out()[1])
        self.src_embedding = nn.Embedding(src_size, E)
        self.tgt_embedding = nn.Embedding(tgt_size, E)
        self.encoder = nn.GRU(E, H // 2, bidirectional=True, batch_first=True)
        self.W, self.U = (nn.Linear(H, H, bias=False) for _ in range(2))
        self.v = nn.Linear(H, 1, bias=False)
        self.rnn = nn.GRU(H + E, H, batch_first=True)
        self.dense = nn.Linear(H, tgt_size)

    def encode(self, source, lens):
        packed = pack_padded_sequence(
            self.src_embedding(source), lens, batch_first=True, enforce_sorted=False
        )
        outputs, last = self.encoder(packed)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True)
        return outputs, last

    def first_state(self, values, last, lens):
        return torch.cat((last[0], last[1]), dim=1).unsqueeze(0)

    def weigh(self, scores, lens):
        return masked_softmax(scores, lens)

    def attend(self, query, word, values, lens):
        sums = self.W(query).unsqueeze(2) + self.U(values).unsqueeze(1)
        weights = self.weigh(self.v(torch.tanh(sums)).squeeze(3), lens)
        return weights @ values, weights

    def join(self, context, word):
        return torch.cat((context, word), dim=2)

    def step(self, word, state, values, lens):
        x = self.tgt_embedding(word)
        context, weights = self.attend(state[-1].unsqueeze(1), x, values, lens)
        output, state = self.rnn(self.join(context, x), state)
        return self.dense(output), weights, state

    def forward(self, source, target_in, source_lens):
        values, last = self.encode(source, source_lens)
        state = self.first_state(values, last, source_lens)
        logits, weights = [], []
        for word in target_in.split(1, dim=1):
            logit, weight, state = self.step(word, state, values, source_lens)
            logits.append(logit)
            weights.append(weight)
        return torch.cat(logits, dim=1), torch.cat(weights, dim=1)


def decode(
    model,
    source,
    lens,
    max_steps,
    first=1,
    next_word=None,
    carry=True,
    stop=torch.all,
    pad=True,
    shift=0,
):
    values, last = model.encode(source, lens)
    start = state = model.first_state(values, last, lens)
    begin = word = torch.full((len(source), 1), first)
    ended = torch.zeros(len(source), dtype=torch.bool)
    ids, weights = [], []
    for _ in range(max_steps):
        logits, weight, state = model.step(word, state, values, lens)
        best = logits.argmax(dim=2)
        ids.append(best.masked_fill(ended[:, None], 0) if pad else best)
        weights.append(weight)
        word = begin if next_word == "bos" else best
        state = state if carry else start
        ended |= best[:, 0] == 2
        if stop(ended):
            break
    return torch.cat(ids, dim=1), torch.cat(weights, dim=1).roll(shift, 1)


def build(kind=Right, **parts):
    """A model with other parts; its last layer writes words of many kinds, and ends."""
    torch.manual_seed(3)
    wrong = type("Wrong", (kind,), parts)
    model = wrong()
    with torch.no_grad():
        model.dense.weight.mul_(20)
        model.tgt_embedding.weight.mul_(3)
        model.dense.bias[2] += 6  # <eos>
    return model


def answer(model, translate=decode):
    """What is said, in one line; the figures aren't measured."""
    result = exercises.own_translator(model, translate)
    return result, " ".join(result.message.split())


def no_mask(self, scores, lens):
    return scores.softmax(dim=2)


def mask_after(self, scores, lens):
    mask = torch.arange(scores.shape[2]) < lens[:, None, None]
    return scores.softmax(dim=2) * mask


def mask_with_zero(self, scores, lens):
    mask = torch.arange(scores.shape[2]) < lens[:, None, None]
    return (scores * mask).softmax(dim=2)


def over_queries(self, scores, lens):
    return scores.softmax(dim=1)


def over_batch(self, scores, lens):
    return scores.softmax(dim=0)


def scores_alone(self, scores, lens):
    return 5 * scores


def turned_mask(self, scores, lens):
    mask = torch.arange(scores.shape[2]) < lens[:, None, None]
    mask[lens == scores.shape[2]] = False
    return scores.masked_fill(mask, -1e30).softmax(dim=2)


def one_more(self, scores, lens):
    return masked_softmax(scores, lens + 1)


def one_less(self, scores, lens):
    return masked_softmax(scores, lens - 1)


def update_first(self, word, state, values, lens):
    x = self.tgt_embedding(word)
    late = state[-1].unsqueeze(1).expand(-1, -1, H)
    output, state = self.rnn(self.join(late, x), state)
    context, weights = self.attend(output, x, values, lens)
    return self.dense(output + context), weights, state


def forget_context(self, word, state, values, lens):
    x = self.tgt_embedding(word)
    context, weights = self.attend(state[-1].unsqueeze(1), x, values, lens)
    output, state = self.rnn(self.join(torch.zeros_like(context), x), state)
    return self.dense(output), weights, state


def forget_word(self, context, word):
    return torch.cat((context, 0 * word), dim=2)


def detached(self, query, word, values, lens):
    context, weights = Right.attend(self, query, word, values, lens)
    return weights.detach() @ values, weights


def word_asks(self, query, word, values, lens):
    return Right.attend(self, torch.cat((word, word), dim=2), word, values, lens)


def no_query(self, query, word, values, lens):
    return Right.attend(self, torch.zeros_like(query), word, values, lens)


def no_keys(self, query, word, values, lens):
    weights = masked_softmax(self.W(query)[..., : values.shape[1]], lens)
    return weights @ values, weights


def not_carried(self, word, state, values, lens):
    logits, weights, _ = Right.step(self, word, state, values, lens)
    return logits, weights, state


def last_place(self, values, last, lens):
    return values[:, -1].unsqueeze(0)


def mixed_rows(self, values, last, lens):
    return last.reshape(1, len(values), H)


def first_annotation(self, values, last, lens):
    return values[:, 0].unsqueeze(0)


def reads_ahead(self, source, target_in, source_lens):
    return Right.forward(self, source, target_in.roll(-1, 1), source_lens)


def steps_first(self, source, target_in, source_lens):
    logits, weights = Right.forward(self, source, target_in, source_lens)
    return logits.transpose(0, 1), weights


def mirrored(self, source, target_in, source_lens):
    logits, weights = Right.forward(self, source, target_in, source_lens)
    return logits, weights.mT


def logits_alone(self, source, target_in, source_lens):
    return Right.forward(self, source, target_in, source_lens)[0]


def first_mask(self, scores, lens):
    return masked_softmax(scores, lens[:1].expand(len(lens)))


def mixed_keys(self, query, word, values, lens):
    _, weights = Right.attend(self, query, word, values, lens)
    return weights @ self.U(values), weights


def plain_mean(self, query, word, values, lens):
    _, weights = Right.attend(self, query, word, values, lens)
    return values.mean(1, keepdim=True), weights


def cut_off(self, word, state, values, lens):
    return Right.step(self, word, state.detach(), values, lens)


def zeros(self, values, last, lens):
    return torch.zeros(1, len(values), H)


def forward_twice(self, values, last, lens):
    return torch.cat((last[0], last[0]), dim=1).unsqueeze(0)


def no_layers(self, values, last, lens):
    return torch.cat((last[0], last[1]), dim=1)


def batch_first(self, source, target_in, source_lens):
    found = Right.forward(self, source, target_in, source_lens)
    return tuple(torch.cat(part.split(1, 1)) for part in found)


def exchanged(self, source, target_in, source_lens):
    return Right.forward(self, source, target_in, source_lens)[::-1]


def probabilities(self, source, target_in, source_lens):
    logits, weights = Right.forward(self, source, target_in, source_lens)
    return logits.softmax(2), weights


def raises(self, scores, lens):
    return masked_softmax(scores, lens[:-1])


def nan(self, scores, lens):
    return masked_softmax(scores, lens) / 0


class Stale(Right):
    """Each update reads the context of the step before."""

    def forward(self, source, target_in, source_lens):
        values, last = self.encode(source, source_lens)
        state = self.first_state(values, last, source_lens)
        context, logits, weights = torch.zeros_like(values[:, :1]), [], []
        for word in target_in.split(1, dim=1):
            x = self.tgt_embedding(word)
            query = state[-1].unsqueeze(1)
            output, state = self.rnn(self.join(context, x), state)
            context, weight = self.attend(query, x, values, source_lens)
            logits.append(self.dense(output))
            weights.append(weight)
        return torch.cat(logits, dim=1), torch.cat(weights, dim=1)


MODELS = {
    "padding gets weight": [{"weigh": no_mask}, {"weigh": mask_with_zero}],
    "the mask is turned round": [{"weigh": turned_mask}],
    "from its own length?": [{"weigh": first_mask}],
    "with U.weight at 0": [{"attend": mixed_keys}],
    "no gradient comes back from the last logits": [{"step": cut_off}],
    "isn't the sum of the annotations with these weights": [{"attend": plain_mean}],
    "change with last[0]": [
        {"first_state": zeros},
        {"first_state": last_place},
        {"first_state": first_annotation},
    ],
    "change with last[1]": [{"first_state": forward_twice}],
    "with torch.cat along axis 1": [{"forward": batch_first}],
    "are exchanged": [{"forward": exchanged}],
    "the logits are probabilities": [{"forward": probabilities}],
    "There: query": [{"first_state": no_layers}],
    "padding was taken away after softmax": [{"weigh": mask_after}],
    "every weight is 1": [{"weigh": over_queries}],
    "softmax over the batch": [{"weigh": over_batch}],
    "Are they scores, before softmax?": [{"weigh": scores_alone}],
    "one position too many": [{"weigh": one_more}],
    "one position too few": [{"weigh": one_less}],
    "NaN or infinite": [{"weigh": nan}],
    "The model doesn't run. It raised": [{"weigh": raises}],
    "the update comes before the attention": [{"step": update_first}],
    "the context is computed and forgotten": [{"step": forget_context}],
    "each update reads the context of the step before": [{"kind": Stale}],
    "no gradient comes back from the logits": [{"attend": detached}],
    "the word is the query": [{"attend": word_asks}],
    "each step asks with the same query": [{"attend": no_query}],
    "U.weight changes neither": [{"attend": no_keys}],
    "Is it read, and do": [{"join": forget_word}],
    "the new state isn't carried on": [{"step": not_carried}],
    "rows are mixed": [{"first_state": mixed_rows}],
    "it reads words that aren't written yet": [{"forward": reads_ahead}],
    "The steps came first": [{"forward": steps_first}],
    "A row belongs to a target word": [{"forward": mirrored}],
    "return two things: logits and weights": [{"forward": logits_alone}],
}


@pytest.mark.parametrize(
    "words, parts", [(words, part) for words, all_ in MODELS.items() for part in all_]
)
def test_a_wrong_piece_is_named(words, parts):
    result, said = answer(build(**parts))
    assert not result and words in said


def decoding(**options):
    return lambda *arguments: decode(*arguments, **options)


def from_references(model, source, lens, max_steps):
    """Teacher forcing in place of its own words."""
    words = own.batch_of(own.held_out()[0][: len(source)]).target_in
    logits, weights = model(source, words, lens)
    return logits.argmax(2), weights


def drawn(model, source, lens, max_steps):
    ids, weights = decode(model, source, lens, max_steps)
    return torch.where(torch.rand(ids.shape) < 0.5, ids, 9), weights


def without_eos(*arguments):
    ids, weights = decode(*arguments)
    return ids.masked_fill(ids == 2, 0), weights


def full_lengths(model, source, lens, max_steps):
    return decode(model, source, torch.full_like(lens, source.shape[1]), max_steps)


def sure_of_bos(*arguments):
    ids, weights = decode(*arguments)
    return torch.cat((torch.full_like(ids[:, :1], 1), ids), 1), weights


def endless(*arguments):
    while True:
        pass


DECODINGS = {
    "each step begins again with the first state": [decoding(carry=False)],
    "every step reads <bos>": [decoding(next_word="bos")],
    "the first word read is <eos>": [decoding(first=2)],
    "the first word read is <pad>": [decoding(first=0)],
    "<eos> itself isn't kept": [without_eos],
    "padding gets weight in my_translate": [full_lengths],
    "words came, though": [lambda m, s, n, steps: decode(m, s, n, steps - 1)],
    "words stand after <eos>": [decoding(pad=False)],
    "when the first sentence has ended": [decoding(stop=torch.any)],
    "the weights beside them are those of other steps": [decoding(shift=1)],
    "aren't the most probable ones": [from_references],
    "draws nothing by chance": [drawn],
    "every translation begins with <bos>": [sure_of_bos],
    "and 41 words came": [lambda m, s, n, steps: decode(m, s, n, steps + 1, stop=any_)],
    "must return two things: ids and weights": [lambda *a: decode(*a)[0]],
    "Which loop doesn't end?": [endless],
    "my_translate doesn't run. It raised ZeroDivisionError": [lambda *a: 1 / 0],
}


def any_(ended):
    return False


@pytest.mark.parametrize(
    "words, wrong", [(words, one) for words, all_ in DECODINGS.items() for one in all_]
)
def test_a_wrong_decoding_is_named(words, wrong, monkeypatch):
    monkeypatch.setattr(exercises.engine, "SECONDS", 2.0)
    result, said = answer(build(), wrong)
    assert not result and words in said


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"join": lambda self, context, word: torch.cat((word, context), dim=2)},
    ],
)
def test_right_pieces_that_were_never_trained(parts):
    """The order in which context and word are joined is free."""
    model = build(**parts)
    before = {name: p.clone() for name, p in model.named_parameters()}
    result, said = answer(model)
    assert not result and "What is missing is the training" in said
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    assert model.training and all(p.grad is None for p in model.parameters())


def test_what_is_not_written_yet():
    class Dots(Right):
        def forward(self, source, target_in, source_lens): ...

    def dots(model, source, source_lens, max_steps): ...

    for model in (..., Dots(), dots):
        assert answer(model, dots)[1].startswith("Not attempted yet")
    assert exercises.own_translator().message.startswith("Not attempted yet")
    for translate in (..., dots):
        result, said = answer(build(), translate)
        assert not result and said.startswith("The model's pieces fit together.")
    assert "your model itself" in answer(Right)[1]


GOOD = {"right": 0.9, "copied": 0.1, "ahead": 0.1, "pad": 0.0}
RATES = {0: 0.4, -1: 0.9, 1: 0.9}


@pytest.mark.parametrize(
    "figures, signs, words",
    [
        ({"loss": 5.0, "bleu": 0}, {"right": 0.1, "copied": 0.9}, "has just read"),
        ({"loss": 5.0, "bleu": 0}, {"right": 0.1, "ahead": 0.6}, "shifted twice"),
        ({}, {"pad": 0.99}, "the loss counts padding"),
        ({"loss": 6.3, "bleu": 0.1}, {"right": 0.0}, "missing is the training"),
        ({"loss": 1.5, "bleu": 30}, {"right": 0.6}, "has learnt less"),
        ({"aer": 0.8}, {"shifted": {0: 0.8, -1: 0.3, 1: 0.9}}, "by one row"),
        ({"aer": 0.8}, {"shifted": {0: 0.8, -1: 0.9, 1: 0.9}}, "summed with?"),
        ({"bleu": 20}, {}, "that training doesn't?"),
    ],
)
def test_figures_are_read(figures, signs, words):
    course = {name: high for name, (_, high) in own.course_figures().items()}
    own.check_learnt(course, {**GOOD, "shifted": RATES})  # nothing to say
    with pytest.raises(own.Wrong) as wrong:
        own.check_learnt({**course, **figures}, {**GOOD, "shifted": RATES, **signs})
    assert words in " ".join(str(wrong.value).split())


def test_the_loss_and_the_step_are_asked_what_notebook_05_asks():
    def dots(logits, targets): ...

    message = exercises.own_translator(build(), decode, dots).message
    assert "fit together. dots: Not attempted yet" in message
    message = exercises.own_translator(build(), decode, lambda *a: a[0].sum()).message
    assert "fit together." in message and "Not yet: wrong in" in message


def test_a_model_that_learnt_to_repeat_what_it_reads():
    """Its greedy words are <bos> for ever, and decoding isn't to blame."""
    model = build()
    with torch.no_grad():
        model.dense.bias[1] += 1e3
    _, said = answer(model)
    assert "the model predicts the word that it has just read" in said


def test_a_trained_model_is_right(monkeypatch):
    """As good as the course's, by figures put in place of a training."""
    monkeypatch.setattr(own, "is_off", lambda name, value: False)
    result, said = answer(build())
    assert result and "✓ Right: 9 questions" in said and "the course's" in said
