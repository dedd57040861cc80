"""The last exercise of notebook 07: its solution is right, and edits of it are not."""

from pathlib import Path

import nbformat
import pytest
import torch

from utils import exercises
from utils.attention import AdditiveAttention
from utils.exercises import put_together as own
from utils.exercises import running

BOOK = Path(__file__).parents[3] / "notebooks" / "solutions" / "07_put_together.ipynb"
CELLS = {cell.id: cell.source for cell in nbformat.read(BOOK, as_version=4).cells}
NAMES = (
    "imports pieces softmax context attention encoder decoder loss training-step "
    "greedy model translate"
)
SOLUTION = "\n\n".join(CELLS[f"own-{name}"] for name in NAMES.split())
LAST = "return logits, self.decoder.attention_weights"
ROWS = "return [row[: row.index(2)] if 2 in row else row for row in rows]"
STATE = "torch.cat((last[0], last[1]), dim=1).unsqueeze(0)"
QUERY = "query = hidden[-1].unsqueeze(1)"
CONTEXT = "my_context(weights, values), weights"
STEP = "step(word, state)"
MASKED = "weights = my_masked_softmax(scores, valid_lens)"
REAL = "real = (torch.arange(X.shape[-1]) < valid_lens[:, None])"
LOOP = "    for _ in range(max_steps):"
MISTAKES = {  # what is said: edits of the solution, (old, new)
    "two things, the weights last": [(LAST, "return logits")],
    "The course's AdditiveAttention is in": [("MyAttention(D", "Additive(D")],
    "one direction only": [("outputs, state", "outputs[..., :64].tile(2), state")],
    "MyEncoder's state": [(STATE, "last")],
    "that reads ids": [("my_greedy(model.decoder", "my_greedy(model.decoder.step")],
    "plain whole numbers": [(ROWS, "return [[*torch.tensor(row)] for row in rows]")],
    "lists of at most 40 ids": [
        (ROWS, "return rows[:-1]"),
        ("range(max_steps)", "range(99)"),
    ],
    "Axis 1 has": [("return torch.cat(all_logits, dim=1)", "return all_logits[0]")],
    "It should run, and": [("ended |= word[:, 0] == 2", "1 / 0")],
    "Does a loop": [(LOOP, f"    while True:\n        pass\n{LOOP}")],
    "are probabilities": [("dense(output)", "dense(output).softmax(2)")],
    "don't sum to 1": [
        (MASKED, f"{MASKED} * 0.5"),
        ("< valid_lens[:, None]", ">= valid_lens[:, None]"),
    ],
    "<eos>, of a sentence gets no weight": [
        ("< valid_lens[:, None]", "< -1 + valid_lens[:, None]"),
        (REAL, REAL.replace("valid_lens", "valid_lens[:1]")),
    ],
    "Padding gets weight": [
        (MASKED, "weights = scores.softmax(dim=2)"),
        ("< valid_lens[:, None]", "<= valid_lens[:, None]"),
    ],
    "a later target word": [("embedding(X).split", "embedding(X).roll(-1, 1).split")],
    "that a step reads doesn't": [("(context, x)", "(context, x * 0)")],
    "the state before the update": [
        (QUERY, "query = x.repeat(1, 1, 2)"),
        (QUERY, "query = self.rnn(x.repeat(1, 1, 3), hidden)[0]"),
    ],
    "forgotten at the next": [("output, hidden =", "output, _ =")],
    "never change the weights": [
        (QUERY, "query = 0 * hidden[-1].unsqueeze(1)"),
        ("torch.tanh(q + k)", "(q + k)"),
    ],
    "to decoder.attention.W.weight, decoder.attention.U.weight": [
        (CONTEXT, "my_context(weights.detach(), values), weights"),
        ("((context, ", "((0 * context, "),
    ],
    "decoder.rnn.weight_hh_l0": [(STATE, "torch.zeros(1, len(ids), 128)")],
    "mix the keys": [(CONTEXT, "my_context(weights, projected_keys), weights")],
    "by U twice": [("torch.eye(projected_keys.shape[2])", "self.U.weight")],
    "change with the batch": [
        (STATE, "last.reshape(1, len(ids), -1)"),
        (STATE, "outputs[:, -1].unsqueeze(0)"),
    ],
    "holds <eos>": [(ROWS, "return rows")],
    "aren't the most probable": [
        (f"logits, state = {STEP}", f"logits, _ = {STEP}"),
        (STEP, "step(0 * word + 1, state)"),
    ],
    "What ends the loop": [("ended.all()", "ended.any()")],
    "06 says of the mean_loss": [("real.sum()", "real.numel()")],
    "06 says of the train_step": [("    optimizer.zero_grad()\n", "")],
    "`MyTranslator` still has its dots": [(LAST, "return ...")],
    "`my_translate` still has its dots": [(ROWS, "return ...")],
}


def answers(old="", new=""):
    """The solution's model and functions, edited; it writes many words, and <eos>."""
    assert old in SOLUTION
    space = {"Additive": AdditiveAttention}
    exec(SOLUTION.replace(old, new) if old else SOLUTION, space)
    torch.manual_seed(8)
    model = space["MyTranslator"](*map(len, own.held_out()[1]))
    model.decoder.dense.weight.data *= 20
    model.decoder.embedding.weight.data *= 3
    model.decoder.dense.bias.data[2] += 6
    return model, *(space[f"my_{name}"] for name in ("translate", "loss", "train_step"))


@pytest.mark.parametrize(
    "said, edit", [(s, edit) for s, edits in MISTAKES.items() for edit in edits]
)
def test_what_is_wrong_is_said(said, edit, monkeypatch):
    monkeypatch.setattr(running, "SECONDS", 1.0)
    monkeypatch.setattr(running, "WAITING", 120)  # the machine may be busy
    result = exercises.own_translator(*answers(*edit))
    assert not result and said in " ".join(result.message.split())


def test_nothing_is_changed():
    model, *functions = answers()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    message = exercises.own_translator(model, *functions).message
    assert "What is missing is the training" in message
    assert all(torch.equal(before[name], x) for name, x in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def test_what_is_not_a_model():
    assert exercises.own_translator().status == "not attempted"
    assert "your model itself" in exercises.own_translator(torch.nn.Linear).message


@pytest.mark.parametrize("name", ["", "loss", "bleu", "aer"])
def test_figures_stand_beside_the_course_s(name, monkeypatch):
    figures = {"loss": 0.42 + 0.14, "bleu": 74.3 - 5.9, "aer": 0.45 + 0.07}
    if name:
        figures[name] += {"loss": 0.02, "bleu": -0.2, "aer": 0.03}[name]
    monkeypatch.setattr(own, "measure", lambda model, translate: figures)
    result = exercises.own_translator(*answers())
    assert (
        bool(result) == (not name) and f"{figures['bleu']:.1f}   74.4" in result.message
    )
    assert not name or own.FIGURES[name][0] in result.message.partition("Were")[0]
