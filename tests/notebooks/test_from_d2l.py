"""What notebooks/FROM_D2L.md says of d2l, of this course and of its figures is so."""

import pydoc
import re

import pytest
import torch
from helpers.repo import NUMBERED, read, said_and_printed

from utils.d2l_bridge import load_d2l, reference_decoder
from utils.seq2seq import Seq2SeqAttentionDecoder, Seq2SeqEncoder

PAGE = read("notebooks/FROM_D2L.md")
FIGURE = re.compile(r"\d+(?:[.,]\d+)+")
B, S, T, H, V = 2, 6, 4, 8, 20


def test_the_names_exist():
    names = re.findall(r"`(utils\.[\w.]+)`", PAGE)
    theirs = re.findall(r"`d2l\.(\w+)", PAGE)
    assert len(names) > 10 and len(theirs) > 8
    assert [name for name in names if pydoc.locate(name) is None] == []
    assert [name for name in theirs if not hasattr(load_d2l(), name)] == []


def test_the_figures_are_those_of_a_notebook_that_the_line_names():
    assert len(FIGURE.findall(PAGE)) > 5
    notebooks = {path.name[:2]: path for path in NUMBERED}
    for line in PAGE.partition("## 4")[2].splitlines():
        named = set(re.findall(r"\]\((\d\d)_", line))
        known = "".join(said_and_printed(notebooks[number]) for number in named)
        figures = FIGURE.findall(re.sub(r"\(\S+\.ipynb\)", "", line))
        assert [number for number in figures if number not in known] == []


def test_what_surprises_in_silence():
    encoder = Seq2SeqEncoder(V, 5, H, num_layers=2)
    decoder = Seq2SeqAttentionDecoder(V, 5, H, num_layers=2)
    source, lens = torch.randint(4, V, (B, S)), torch.tensor([S, 3])
    outputs, hidden = encoder(source, lens)
    target, state = source[:, :T], decoder.init_state((outputs, hidden), lens)
    assert state[1] is state.projected_keys and state[1].shape == (B, S, H)
    decoder(target, state)
    assert decoder.attention_weights[0].shape == (T, S)
    theirs, turned = reference_decoder(decoder), outputs.transpose(0, 1)
    assert theirs.state_dict().keys() == decoder.state_dict().keys()
    good = theirs.init_state((turned, hidden), lens)
    assert good[0].shape == (B, S, H) and good[1] is hidden
    theirs(target, good)
    assert theirs.attention_weights[0].shape == (B, 1, S)
    for kind, given in ((theirs, outputs), (decoder, turned)):
        with pytest.raises(RuntimeError):
            kind(target, kind.init_state((given, hidden), lens))
    square, lens = torch.randint(4, V, (T, T)), torch.full((T,), T)
    outputs, hidden = encoder(square, lens)  # as many sentences as words: no error
    mixed = theirs.init_state((outputs, hidden), lens)
    assert torch.equal(mixed[0][0, 1], outputs[1, 0])
    theirs(square, mixed)
