"""What notebooks/FROM_D2L.md says of d2l, of this course and of its figures is so."""

import pydoc
import re

import torch
from helpers.repo import NUMBERED, number, read, said_and_printed

from utils.d2l_bridge import load_d2l, reference_decoder
from utils.seq2seq import Seq2SeqAttentionDecoder, Seq2SeqEncoder

PAGE = read("notebooks/FROM_D2L.md")
FIGURE = re.compile(r"\d+(?:[.,]\d+)+")


def test_the_names_exist():
    names = re.findall(r"`(utils\.[\w.]+)`", PAGE)
    theirs = re.findall(r"`d2l\.(\w+)", PAGE)
    assert len(names) > 10 and len(theirs) > 8
    assert [name for name in names if pydoc.locate(name) is None] == []
    assert [name for name in theirs if not hasattr(load_d2l(), name)] == []


def test_the_figures_are_those_of_a_notebook_that_the_line_names():
    assert len(FIGURE.findall(PAGE)) > 5
    notebooks = {number(path): path for path in NUMBERED}
    for line in PAGE.partition("## 4")[2].splitlines():
        named = set(re.findall(r"\]\((\d\db?)_", line))
        known = "".join(said_and_printed(notebooks[number]) for number in named)
        figures = FIGURE.findall(re.sub(r"\(\S+\.ipynb\)", "", line))
        assert [number for number in figures if number not in known] == []


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
