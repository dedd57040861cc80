"""The last exercise of notebook 07: its solution is right, and edits of it are not."""

from pathlib import Path

import nbformat
import pytest
import torch

from utils import exercises
from utils.exercises import put_together as own
from utils.exercises import running

BOOK = Path(__file__).parents[3] / "notebooks" / "solutions" / "07_put_together.ipynb"
CELLS = {cell.id: cell.source for cell in nbformat.read(BOOK, as_version=4).cells}
NAMES = (
    "imports pieces softmax context model step one-step loss training-step translate"
)
SOLUTION = "\n\n".join(CELLS[f"own-{name}"] for name in NAMES.split())
LAST = "return torch.cat(logits, dim=1), torch.cat(weights, dim=1)"
TRANSLATED = "return torch.cat(ids, dim=1), torch.cat(weights, dim=1)"
STATE = "torch.cat((last[0], last[1]), dim=1).unsqueeze(0)"
QUERY = "query = hidden_state[-1].unsqueeze(1)"
CONTEXT = "my_context(weights, annotations)"
NEXT = "logits, weight, state = step(model, word, state)\n        word ="
MASKED = "scores.masked_fill(~real.unsqueeze(1), -1e30).softmax(dim=2)"
LOOP = "    for _ in range(max_steps):"
MISTAKES = {  # what is said: edits of the solution, (old, new)
    "two things, the weights last": [
        (LAST, "return torch.cat(logits, dim=1)"),
        (TRANSLATED, "return torch.cat(ids, dim=1)"),
    ],
    "Axis 0 has size": [(LAST, "return torch.cat(logits), torch.cat(weights)")],
    "It should run, and": [("ended |= word == 2", "1 / 0")],
    "Does a loop": [(LOOP, f"    while True:\n        pass\n{LOOP}")],
    "are probabilities": [("dense(output)", "dense(output).softmax(2)")],
    "don't sum to 1": [
        (MASKED, "scores.softmax(2) * real.unsqueeze(1)"),
        (MASKED, "scores"),
        ("-1e30", "float('nan')"),
        (".softmax(dim=2)", ".softmax(dim=1)"),
    ],
    "<eos>, of a sentence gets no weight": [
        ("< valid_lens", "< -1 + valid_lens"),
        ("< valid_lens", ">= valid_lens"),
        ("valid_lens.unsqueeze(1)", "valid_lens[:1].unsqueeze(1)"),
    ],
    "Padding gets weight": [
        (MASKED, "scores.softmax(dim=2)"),
        ("-1e30", "0"),
        ("< valid_lens", "<= valid_lens"),
    ],
    "a later target word": [("target_in.split", "target_in.roll(-1, 1).split")],
    "that a step reads doesn't": [("embedding(word)", "embedding(word) * 0")],
    "the state before the update": [
        (QUERY, "query = model.tgt_embedding(word).repeat(1, 1, 2)"),
        (QUERY, "query = model.rnn(model.tgt_embedding(word).repeat(1, 1, 3))[0]"),
    ],
    "forgotten at the next": [("output, hidden_state =", "output, _ =")],
    "never change the weights": [
        (QUERY, "query = 0 * hidden_state[-1].unsqueeze(1)"),
        ("torch.tanh(sums)", "sums"),
    ],
    "to W.weight, U.weight, v.weight": [
        (CONTEXT, "my_context(weights.detach(), annotations)"),
        (CONTEXT, "annotations.mean(1, keepdim=True)"),
        ("((context, ", "((0 * context, "),
    ],
    "rnn.weight_hh_l0": [(STATE, "torch.zeros(1, len(source), 128)")],
    "mix the keys": [(CONTEXT, "my_context(weights, keys)")],
    "change with the batch": [
        (STATE, "last.reshape(1, len(source), -1)"),
        (STATE, "annotations[:, -1].unsqueeze(0)"),
    ],
    "begins with <bos>": [("torch.cat(ids,", "torch.cat([0 * word + 1, *ids][:-1],")],
    "aren't the most probable": [
        (NEXT, NEXT.replace("weight, state", "weight, _")),
        (NEXT, NEXT.replace("word, state)", "0 * word + 1, state)")),
        ("(len(source), 1), 1)", "(len(source), 1), 2)"),
    ],
    "but not the weights": [(TRANSLATED, f"{TRANSLATED}.roll(1, 1)")],
    "Words stand after": [(".masked_fill(ended, 0)", "")],
    "What ends its loop?": [("ended.all()", "ended.any()")],
    "06 says of the mean_loss": [("ignore_index=0", "ignore_index=-1")],
    "06 says of the train_step": [("    optimizer.zero_grad()\n", "")],
    "where the dots are": [(LAST, "return ..."), (TRANSLATED, "return ...")],
}


def answers(old="", new=""):
    """The solution's model and functions, edited; it writes many words, and <eos>."""
    assert old in SOLUTION
    space = {}
    exec(SOLUTION.replace(old, new) if old else SOLUTION, space)
    torch.manual_seed(3)
    model = space["MyTranslator"](*map(len, own.held_out()[1]))
    model.dense.weight.data *= 20
    model.tgt_embedding.weight.data *= 3
    model.dense.bias.data[2] += 6
    return model, *(space[f"my_{name}"] for name in ("translate", "loss", "train_step"))


@pytest.mark.parametrize(
    "said, edit", [(s, edit) for s, edits in MISTAKES.items() for edit in edits]
)
def test_what_is_wrong_is_said(said, edit, monkeypatch):
    monkeypatch.setattr(running, "SECONDS", 1.0)
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
