"""The exercises of notebook 06. B sentences, T target positions, V words."""

from collections import namedtuple
from copy import deepcopy

import torch

from utils.attention import length_mask
from utils.data import Batch
from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw, seeded
from utils.exercises.result import Fault
from utils.models import build_model


def _loss_cases(*sizes):
    """Logits and targets of sentences with so many words; T and V."""
    for lens, T, V in sizes:
        targets, lens = torch.arange(len(lens) * T).view(-1, T), torch.tensor(lens)
        targets = 3 + targets.square() % (V - 3)
        targets[range(len(lens)), lens - 1] = 2
        yield draw(T, (len(lens), T, V))[0], targets * length_mask(lens, T)


mean_loss = Exercise(
    "mean_loss",
    """
def my_loss(logits, targets):  # (B, T, V), (B, T) -> one number
    log_probs = logits.log_softmax(dim=-1)  # (B, T, V)
    nats = -log_probs.gather(2, targets.unsqueeze(2)).squeeze(2)  # (B, T)
    real = targets != 0  # (B, T)
    return (nats * real).sum() / real.sum()
""",
    {
        "There is no padding here. A word's loss is minus its log-probability, by a "
        "softmax over the V logits. Return its mean over all words, <eos> too.": [
            *_loss_cases(([4, 4, 4], 4, 7), ([5, 5], 5, 8))
        ],
        "Padding, a target of 0, is neither in the sum nor in the number of words.": [
            *_loss_cases(([3, 4], 4, 7), ([5, 1, 3], 6, 9), ([3], 5, 4)),
            *_loss_cases(([4, 2], 4, 7), ([4, 2, 3, 1], 4, 4)),
        ],
    },
    r"""
Padding is counted, as if <pad> were a word to learn. Which targets are no words?
    (nats * real).sum() / real.sum() => nats.mean()
The nats of padding are in the sum. Which positions belong above the line?
    (nats * real) => nats
    targets != 0 => targets == 0
The more padding, the smaller the loss. What is counted below the line?
    (nats * real).sum() / real.sum() => (nats * real).mean()
The nats are added, but not divided by the number of real words in the batch.
    / real.sum() =>
This is the mean of the sentences' means: a word of a short sentence counts more.
    (nats * real).sum() / real.sum() => ((nats * real).sum(1) / real.sum(1)).mean()
Give gather an index with as many axes as the logits have: targets.unsqueeze(-1).
    .gather(2, targets.unsqueeze(2)).squeeze(2) => .gather(2, targets)
    .gather(2, targets.unsqueeze(2)).squeeze(2) => [range(len(targets)), targets]
Softmax is applied twice: log_softmax and cross_entropy take the logits as they are.
    .log_softmax => .softmax(-1).log_softmax
cross_entropy looks for the words in axis 1. Flatten two axes, or exchange two.
    => return F.cross_entropy(logits, targets)
reshape and view move no axis: they mix the words. transpose exchanges two axes.
    => B, T, V = logits.shape\n    return F.cross_entropy(logits.reshape(B, V, T),
        targets, ignore_index=0)
""",
    gradients=True,
)

LOSS = mean_loss.made(mean_loss.solution)
TwoSteps = namedtuple("TwoSteps", "loss_1 loss_2 training parameters_1 parameters_2")


def _two_steps(step, model, batches, rate, clip):
    """What two training steps, by plain gradient descent, return and change."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    model.eval()  # as it is after a validation
    losses, modes, parameters = [], [], []
    model.encoder.register_forward_pre_hook(lambda m, _: modes.append(m.training))
    for batch in batches():
        losses.append(step(model, batch, optimizer, clip))
        if losses[-1] is None:
            return None
        if getattr(losses[-1], "requires_grad", False):
            raise Fault("The loss returned must be a plain number, and not a tensor.")
        parameters.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    return TwoSteps(*losses, all([*modes, model.training]), *parameters)


def _step_case(seed, H, rate, clip, *words):
    """A model, and two batches: the words of the sources, of the targets, of each."""
    model = seeded(seed, build_model, "attention", 11, 11, H - 1, H)
    ids = [[[*range(10 - n, 10), 2] for n in lens] for lens in words]
    batches = Batch.from_ids(*ids[:2]), Batch.from_ids(*ids[2:])
    return model, lambda: deepcopy(batches), rate, clip


train_step = Exercise(
    "train_step",
    """
def my_train_step(model, batch, optimizer, clip):  # -> the loss, a number
    model.train()
    logits, _ = model(batch.source, batch.target_in, batch.source_lens)
    loss = my_loss(logits, batch.target_out)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return loss.item()
""",
    {
        "There is no padding here, and nothing to clip. In training mode, this loss's "
        "gradient alone makes an update. Return the loss before it, a plain number.": [
            _step_case(4, 6, 0.3, 100.0, [2, 3], [3, 3], [1, 2], [2, 2]),
            _step_case(5, 5, 0.2, 100.0, [3, 2, 1], [2, 2, 2], [4], [5]),
        ],
        "Padding isn't counted; a gradient whose norm is above clip is scaled to it.": [
            _step_case(3, 6, 0.3, 100.0, [2], [4], [3, 1], [2, 5]),
            _step_case(0, 4, 0.5, 0.05, [3, 1], [5, 2], [2, 4], [1, 3]),
            _step_case(2, 5, 1.0, 0.4, [4, 2, 1], [2, 6, 3], [3, 3], [4, 1]),
        ],
    },
    r"""
The gradients of the step before are still there: backward adds to them.
    optimizer.zero_grad() => pass
No parameter has changed. Which three calls make an update, and in which order?
    loss.backward() => pass
The gradient isn't clipped to the norm `clip`. Between which two calls must that stand?
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip) => pass
The loss compares the logits with target_in, which the decoder has just read.
    batch.target_out => batch.target_in
The decoder reads target_out: at each step it sees the word that it should write.
    batch.target_in => batch.target_out
Padding is counted in the loss. Which words of target_out are real?
    my_loss(logits => F.cross_entropy(logits.mT
Training mode is off while the loss is computed, or at the end. What switches it on?
    model.train() => pass
A plain number has no backward(). When is the tensor needed for the last time?
    batch.target_out) => batch.target_out).item()
""",
    unwrap=_two_steps,
    given=("utils.training.masked_cross_entropy", "utils.guards.require_share"),
    names={"my_loss": LOSS},
)


Trained = namedtuple("Trained", "losses loss_after")


def _training(training, model, batches, learning_rate):
    """The losses that a training returns, and the loss when it is over."""
    losses = training(model, batches(), learning_rate)
    batch = batches()[0]
    with torch.no_grad():
        logits, _ = model(batch.source, batch.target_in, batch.source_lens)
    after = LOSS(logits, batch.target_out).item()
    return None if losses is None else Trained(losses, after)


def _training_case(seed, H, learning_rate, *words):
    """A model; batches with so many words in the source and in the target."""
    model = seeded(seed, build_model, "attention", 11, 11, H - 1, H)
    ids = [[[*range(10 - n, 10), 2] for n in lens] for lens in words]
    batches = [Batch.from_ids(rows, rows[::-1]) for rows in ids]
    return model, lambda: deepcopy(batches), learning_rate


first_training = Exercise(
    "first_training",
    """
def my_training(model, batches, learning_rate):  # -> the losses, a list
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    losses = []
    for k, batch in enumerate(batches):
        optimizer.param_groups[0]["lr"] = learning_rate * (1 - k / len(batches))
        losses.append(my_train_step(model, batch, optimizer, 1.0))
    return losses
""",
    {
        "One Adam, made before the loop; one update for each batch, each at its own "
        "learning rate; a list of the losses.": [
            _training_case(0, 4, 0.03, [2, 3], [1, 4], [3, 3], [2, 1], [4, 2]),
            _training_case(1, 6, 0.05, [3, 1, 2], [2, 2, 4], [1, 5, 2]),
        ],
    },
    r"""
Adam is made anew for each batch: it forgets the gradients that it has seen.
    optimizer.param_groups[0]["lr"] = learning_rate * (1 - k / len(batches)) =>
        optimizer = torch.optim.Adam(model.parameters(),
        lr=learning_rate * (1 - k / len(batches)))
The learning rate doesn't fall: it is the same at every update.
    * (1 - k / len(batches)) =>
It falls too fast: each update makes the last one's rate smaller.
    = learning_rate * => *=
`*` comes before `-`: learning_rate * 1 - k / n needs brackets.
    (1 - k / len(batches)) => 1 - k / len(batches)
The new learning rate comes too late: set it before the update that it is meant for.
    optimizer.param_groups[0]["lr"] = learning_rate * (1 - k / len(batches)) =>
        pass ;; 1.0)) => 1.0))\n        optimizer.param_groups[0]["lr"] =
        learning_rate * (1 - k / len(batches))
The rate falls too early, or ends at 0: k counts from 0 to len(batches) - 1.
    1 - k / len => 1 - (k + 1) / len
    k / len(batches) => k / (len(batches) - 1)
The loop ends after its first update. Is the `return` inside it?
    return losses =>     return losses
""",
    unwrap=_training,
    given=("utils.training.", "utils.guards."),
    names={"my_train_step": train_step.made(train_step.solution)},
)


def _decoding_case(rows, max_steps):
    """A decoder that writes rows; it skips a word if it doesn't read its last one."""
    script = torch.tensor([(row + 3 * [*range(3, 12)])[:24] for row in rows])

    def step(words, state):  # (B, 1), (B, 2): the next place, and the last word
        if words.shape != (len(rows), 1) or words.is_floating_point():
            found = f"{tuple(words.shape)}, {words.dtype}"
            raise Fault("`step` reads ids (B, 1), torch.long, and not {}.", found)
        place = state[:, :1] + (words != state[:, 1:])
        word = script.gather(1, place)
        return torch.eye(12)[word], torch.cat((place + 1, word), dim=1)

    return step, torch.tensor([[0, 1]] * len(rows)), len(rows), max_steps


greedy_decode = Exercise(
    "greedy_decode",
    """
def my_greedy(step, state, batch_size, max_steps):  # -> a list of lists of ids
    word, written = torch.full((batch_size, 1), 1), []  # 1 is <bos>
    ended = torch.zeros(batch_size, dtype=torch.bool)
    for _ in range(max_steps):
        logits, state = step(word, state)
        word = logits.argmax(dim=-1)
        written.append(word)
        ended |= word[:, 0] == 2  # <eos>
        if ended.all():
            break
    rows = torch.cat(written, dim=1).tolist()
    return [row[: row.index(2)] if 2 in row else row for row in rows]
""",
    {
        "Each step reads the words just written, at first <bos>, and the state of the "
        "step before. A sentence ends before its first <eos>, and the others go on.": [
            _decoding_case([[5, 6, 7, 2], [8, 2], [4, 9, 2]], 6),
            _decoding_case([[7, 2], [3, 5, 6, 2], [4, 4, 8, 5, 2]], 8),
        ],
        "Without <eos>, the first max_steps words count. Words after <eos> never do.": [
            _decoding_case([[9, 8, 7, 6, 5, 4, 3, 2], [6, 2]], 5),
            _decoding_case([[10, 10, 3, 2], [2], [11, 5, 2], [3, 4, 5, 2]], 4),
            _decoding_case([[4, 2, 6, 2], [5, 9, 7, 3, 8, 2]], 7),
        ],
    },
    r"""
<eos> is kept. It says that the sentence has ended, and isn't a word of it.
    row.index(2)] => row.index(2) + 1]
Words that come after <eos> are kept. Where does each sentence end?
    if 2 in row => if False
    if 2 in row => if False ;; ended.all() => False
    row[: row.index(2)] if 2 in row else row => [i for i in row if i != 2]
All sentences are stopped as soon as one has ended.
    ended.all() => ended.any()
<bos> is among the words. It is read, and never written.
    return [row => return [[1] + row
The word just written isn't read at the next step: each step reads <bos> again.
    step(word, state) => step(torch.full((batch_size, 1), 1), state)
The state isn't kept: each step starts again from the first one.
    logits, state = => logits, _ =
The loop makes one step too few, or too many: max_steps words may be written.
    range(max_steps) => range(max_steps - 1)
    range(max_steps) => range(max_steps + 1)
A sentence that max_steps has cut off has no <eos>, and `index` finds nothing.
    if 2 in row else row =>
`step` reads (B, 1), a row for each sentence. Which shape has the word that it gets?
    torch.full((batch_size, 1), 1) => torch.tensor([1])
    argmax(dim=-1) => argmax(dim=-1)[:, 0] ;; word[:, 0] => word
    argmax(dim=-1) => argmax(dim=1)
A list for each step came. One for each sentence is asked for: exchange the two.
    return [ => return [list(ids) for ids in zip(*rows)]\n    [
""",
)

lstm_step = Exercise(
    "lstm_step",
    """
def my_lstm_step(x, h, c, W, U, b):  # (B, E), (B, H), (B, H), (4H, E), (4H, H), (4H,)
    gates = x @ W.T + h @ U.T + b  # (B, 4H)
    i, f, g, o = gates.chunk(4, dim=-1)  # (B, H) each
    i, f, o = torch.sigmoid(i), torch.sigmoid(f), torch.sigmoid(o)
    g = torch.tanh(g)
    c = f * c + i * g  # the new cell
    h = o * torch.tanh(c)  # the new state
    return h, c
""",
    {
        "Follow the formulas one by one: four gates, the cell, the state. Return the "
        "new h and the new c. A row of x is one word.": [
            draw(n, (B, E), (B, H), (B, H), (4 * H, E), (4 * H, H), (4 * H,))
            for n, (B, E, H) in enumerate(((2, 3, 4), (3, 2, 5), (4, 4, 4), (1, 5, 2)))
        ],
    },
    """
The gates are exchanged: their order in W, U and b is i, f, g, o, and f keeps the old c.
    i, f, g, o = => f, i, g, o =
    i, f, g, o = => i, f, o, g =
The candidate g is between -1 and 1: tanh makes it, and not the sigmoid.
    g = torch.tanh(g) => g = torch.sigmoid(g)
The gates i, f and o are shares, between 0 and 1. Which function makes each so?
    torch.sigmoid => torch.tanh
    torch.sigmoid =>
The state is o times the tanh of the new cell. Is the tanh missing, or is the cell old?
    torch.tanh(c) => c
    c = f => new = f ;; return h, c => return h, new
The new cell has shares of their own, f of the old cell and i of g, as a GRU hasn't.
    i * g => (1 - f) * g
Two results are asked for: first the new h, then the new c.
    return h, c => return c, h
The sentences are cut into four, and not the gates. Along which axis do those stand?
    , dim=-1) => )
""",
    gradients=True,
)
