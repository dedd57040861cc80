"""What notebooks/FROM_D2L.md says of d2l, of this course and of its figures is so."""

import inspect
import pydoc
import re
from importlib import metadata

import pytest
import torch
from helpers.repo import NUMBERED, number, read, said_and_printed

from utils.d2l_bridge import (
    D2LAttentionDecoder,
    load_d2l,
    reference_decoder,
    reference_encoder,
)
from utils.seq2seq import AttentionDecoder, Seq2SeqAttentionDecoder, Seq2SeqEncoder

PAGE = read("notebooks/FROM_D2L.md")
FIGURE = re.compile(r"\d+(?:[.,]\d+)+")
START, WITH_DECODER, WITH_SHORT = re.findall(r"```python\n(.*?)```", PAGE, re.S)
PASTED = "from utils.d2l_bridge import D2LAttentionDecoder as Seq2SeqAttentionDecoder"
SHORT = """
class BahdanauAttention(nn.Module):
    def __init__(self, hidden_dim):
        super().__init__()
        self.W1, self.W2 = (nn.Linear(hidden_dim, hidden_dim) for _ in range(2))
        self.v = nn.Linear(hidden_dim, 1)

    def forward(self, decoder_hidden, encoder_outputs):
        sums = self.W1(decoder_hidden) + self.W2(encoder_outputs)
        alpha = F.softmax(self.v(torch.tanh(sums)), dim=0)
        return (alpha * encoder_outputs).sum(dim=0), alpha
"""


def run(*cells):
    """The names after these cells."""
    names = {}
    for cell in cells:
        exec(cell, names)
    return names


def test_the_names_exist():
    names = re.findall(r"`(utils\.[\w.]+)`", PAGE)
    theirs = re.findall(r"`d2l\.(\w+)", PAGE)
    assert len(names) > 10 and len(theirs) > 8
    assert [name for name in names if pydoc.locate(name) is None] == []
    assert [name for name in theirs if not hasattr(load_d2l(), name)] == []


def test_the_figures_are_those_of_a_notebook_that_the_line_names():
    assert len(FIGURE.findall(PAGE)) > 5
    notebooks = {number(path): path for path in NUMBERED}
    for line in PAGE.partition("## 6")[2].splitlines():
        named = set(re.findall(r"\]\((\d\db?)_", line))
        known = "".join(said_and_printed(notebooks[number]) for number in named)
        figures = FIGURE.findall(re.sub(r"\(\S+\.ipynb\)", "", line))
        assert [number for number in figures if number not in known] == []


def test_a_decoder_of_d2l_can_be_pasted(capsys):
    """In place of a learner's class, the bridge's, which has d2l's names and shapes."""
    run(START, PASTED, WITH_DECODER)
    assert "4 5 10 and 4 5 6" in capsys.readouterr().out


def test_what_the_page_says_of_release_0_17_0():
    d2l = load_d2l()
    assert metadata.version("d2l") == "0.17.0"
    asked = " ".join(metadata.requires("d2l"))
    assert not re.search("torchvision|[=<>]", asked)
    assert "import torchvision" in inspect.getsource(d2l)
    sizes = list(inspect.signature(d2l.AdditiveAttention).parameters)[:4]
    assert sizes == ["key_size", "query_size", "num_hiddens", "dropout"]
    parts = (kind(10, 8, 16, 2) for kind in (d2l.Seq2SeqEncoder, D2LAttentionDecoder))
    model = d2l.EncoderDecoder(*parts)
    X = torch.zeros(4, 7).long()
    logits, state = model(X, X, torch.tensor([7, 3, 2, 5]))
    assert logits.shape == (4, 7, 10) and len(state) == 3
    marks = ["<pad>", "<bos>", "<eos>"]
    assert d2l.Vocab([["a"]], 0, marks)[["<unk>", *marks]] == [0, 1, 2, 3]
    with pytest.raises(ZeroDivisionError):
        d2l.bleu("va", "va !", k=2)
    none = d2l.masked_softmax(torch.zeros(1, 1, 4), torch.tensor([0]))
    assert none.tolist() == [[[0.25] * 4]]


def test_the_short_class_of_notes():
    torch.manual_seed(0)
    given = run(START, SHORT, WITH_SHORT)["yours"]
    B, S, H = 3, 6, 16
    query, states = torch.randn(B, H), torch.randn(B, S, H)  # batch first
    with pytest.raises(RuntimeError, match=r"\(3\).*\(6\)"):
        given(query, states)
    _, alpha = given(torch.randn(S, H), torch.randn(S, S, H))  # B = S
    torch.testing.assert_close(alpha.sum(dim=0), torch.ones(S, 1))  # over sentences
    assert (alpha.sum(dim=1) - 1).abs().max() > 0.01
    context, alpha = given(query[:1], states[:1])  # B = 1
    assert context.shape == (S, H) and torch.equal(alpha, torch.ones(1, S, 1))


def test_what_surprises_in_silence():
    """There are as many sentences as words: no shape tells the axes apart."""
    encoder, decoder = Seq2SeqEncoder(20, 5, 8), Seq2SeqAttentionDecoder(20, 5, 8)
    theirs, words, lens = reference_decoder(decoder), torch.ones(4, 4).long(), [4] * 4
    outputs, hidden = encoder(words, torch.tensor(lens))
    state = decoder.init_state((outputs, hidden), torch.tensor(lens))
    assert state[1] is state.projected_keys
    decoder(words, state)
    assert decoder.attention_weights[0].shape == (4, 4)
    mixed = theirs.init_state((outputs, hidden), torch.tensor(lens))
    assert mixed[1] is hidden and torch.equal(mixed[0][0, 1], outputs[1, 0])
    theirs(words, mixed)
    assert theirs.attention_weights[0].shape == (4, 1, 4)
    time_first, hidden = reference_encoder(encoder)(words)
    mixed = decoder.init_state((time_first, hidden), torch.tensor(lens))
    assert decoder(words, mixed)[0].shape == (4, 4, 20)  # and nothing is raised


def test_what_fails_loudly():
    encoder, decoder = Seq2SeqEncoder(20, 5, 8), Seq2SeqAttentionDecoder(20, 5, 8)
    words, lens = torch.ones(2, 4).long(), torch.tensor([4, 4])
    outputs = encoder(words, lens)
    time_first = outputs[0].transpose(0, 1), outputs[1]
    with pytest.raises(ValueError, match="unpack"):
        _, _, _ = decoder.init_state(outputs, lens)
    for wrong in (encoder, decoder.init_state, AttentionDecoder):
        with pytest.raises(TypeError):
            wrong(outputs)
    for one, given in ((decoder, time_first), (reference_decoder(decoder), outputs)):
        with pytest.raises((ValueError, RuntimeError)):
            one(words, one.init_state(given, lens))
