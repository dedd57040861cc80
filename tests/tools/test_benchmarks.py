"""The benchmarks, with tiny sizes: do all sides do the same work, and do the tables say
what the numbers say? Nothing here asserts a speed.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys

import measure
import memory
import nbformat
import pytest
import report
import sides
import timing
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import notebooks as notebooks_command
from utils.data import Pair
from utils.text import EOS_ID, PAD_ID, Vocab

pytestmark = pytest.mark.slow

TINY = sides.Sizes(V=30, E=4, H=6, B=5)
QUICK = measure.QUICK._replace(sizes=TINY, lengths=(4,), growth_lengths=(3, 5))


def both(padded):
    model = sides.our_model(TINY)
    return model, sides.reference(model), sides.random_batch(TINY, 6, padded)


@pytest.mark.parametrize("padded", [False, True])
def test_a_random_batch_has_the_lengths_it_says(padded):
    batch = sides.random_batch(sides.Sizes(V=30, B=64), 9, padded=padded)
    for ids, lens in (
        (batch.source, batch.source_lens),
        (batch.target_out, batch.target_lens),
    ):
        assert ids.shape == (64, 9) and lens.max() == 9
        assert ((ids != PAD_ID).sum(1) == lens).all()
        assert ((ids == EOS_ID).sum(1) == 1).all()
        assert lens.min() == (4 if padded else 9)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("part", ["encoder.rnn", "decoder.attention", "decoder.dense"])
def test_other_weights_are_found(part, padded):
    model, net, batch = both(padded)
    sides.check_same_step(model, net, batch)
    with torch.no_grad():
        next(net.get_submodule(part).parameters())[0] += 0.1
    with pytest.raises(AssertionError, match="they don't do the same work"):
        sides.check_same_step(model, net, batch)


@pytest.mark.parametrize("name", sides.LOSSES)
@pytest.mark.parametrize(
    "change, what",
    [
        (lambda loss: 1.01 * loss, "^loss"),
        (lambda loss: 2 * loss - loss.detach(), "^gradient of"),  # the value stays
        (lambda loss: loss * float("nan"), "^loss"),
    ],
)
def test_another_loss_or_gradient_is_found(monkeypatch, name, change, what):
    right = sides.LOSSES[name]
    monkeypatch.setitem(sides.LOSSES, name, lambda *args: change(right(*args)))
    with pytest.raises(AssertionError, match=f"{what}.*{name}: the sides differ"):
        sides.check_same_step(*both(padded=True))


def test_a_start_after_the_padding_is_found(monkeypatch):
    """d2l as it is, on a padded batch: its decoder starts from another state."""
    as_it_is = lambda net, b: net(b.source, b.target_in, b.source_lens)[0]  # noqa: E731
    monkeypatch.setattr(sides, "scores_from_our_start", as_it_is)
    with pytest.raises(AssertionError, match="scores: the sides differ"):
        sides.check_same_step(*both(padded=True))


@pytest.mark.parametrize("side", sides.SIDES)
def test_a_step_changes_all_weights(monkeypatch, side):
    made = []
    for name in ("our_model", "reference"):
        make = getattr(sides, name)
        keep = lambda x, make=make: made.append(make(x)) or made[-1]  # noqa: E731
        monkeypatch.setattr(sides, name, keep)
    step = sides.step_of(side, TINY, sides.random_batch(TINY, 8))
    before = [p.detach().clone() for p in made[-1].parameters()]
    step()
    for (name, new), old in zip(made[-1].named_parameters(), before, strict=True):
        assert not torch.equal(new, old), name


# --- timing -------------------------------------------------------------------------


def test_the_sides_take_turns_in_going_first():
    calls = []
    named = [lambda c=c: calls.append(c) or "abc".index(c) for c in "abc"]
    taken = timing.alternate(*named, rounds=3)
    assert "".join(calls) == "abc" + "abcbcacab"
    assert taken == [[0] * 3, [1] * 3, [2] * 3]  # each side's own
    with pytest.raises(ValueError, match="at least one round"):
        timing.alternate(rounds=0)


def test_a_ratio_is_of_one_round():
    assert timing.ratios([6.0, 2.0], [3.0, 4.0]) == [2.0, 0.5]
    with pytest.raises(ValueError, match="shorter"):
        timing.ratios([6.0, 2.0], [3.0])


def test_a_slow_spell_of_the_machine_falls_on_all_sides(monkeypatch):
    """Each call takes one second, but for a spell in which it takes ten."""
    clock = iter([1] * 14 + [10] * 9 + [1] * 19)
    taken = timing.alternate(*[lambda: next(clock)] * 2, rounds=20, warm_up=False)
    found = sorted(timing.ratios(*taken))
    assert found[10] == 1  # in turn, the median doesn't feel it
    one_after_the_other = timing.ratios([1] * 14 + [10] * 6, [10] * 3 + [1] * 17)
    assert sorted(one_after_the_other) != found


def test_times_of_sides_become_ratios_that_are_above_one_for_the_faster():
    taken = {"plain": [2.0], "by hand": [1.0], "d2l": [4.0]}
    rows = measure.rows_of_sides("x", taken, "{:.0f} s".format, {"plain": 1.4})
    assert [row["values"] for row in rows] == [[2.0], [4.0], [2.0]]
    assert [row["target"] for row in rows] == [1.4, None, None]
    assert rows[0]["note"] == "plain 2 s, by hand 1 s, d2l 4 s"


# --- what is measured ---------------------------------------------------------------


@pytest.fixture
def corpus():
    """Pairs of words of unequal lengths, and their vocabularies."""
    words = "abcdefgh"
    pairs = [
        Pair(tuple(words[i:j]), tuple(reversed(words[i : j + 1])))
        for i, j in itertools.combinations(range(len(words)), 2)
    ]
    languages = enumerate(("de", "en"))
    return pairs, [Vocab([p[side] for p in pairs], lang) for side, lang in languages]


@pytest.fixture
def model(corpus):
    """Untrained, but for one thing that training teaches: never write <pad>."""
    torch.manual_seed(0)
    model = measure.build_model("attention", *map(len, corpus[1]), 8, 16)
    with torch.no_grad():
        model.decoder.dense.bias[PAD_ID] = -100
    return model


def test_all_sides_see_the_same_words_in_an_epoch(corpus, model, monkeypatch):
    settings = QUICK._replace(rounds=3)
    taken = measure.epoch_seconds(model, *corpus, settings)
    assert list(taken) == list(sides.SIDES)
    assert all(len(parts) == 3 and min(parts) > 0 for parts in taken.values())
    monkeypatch.setattr(measure.BatchLoader, "epoch", lambda *_: iter([]))
    with pytest.raises(AssertionError, match="different numbers of words"):
        measure.epoch_seconds(model, *corpus, settings)


def test_both_sides_translate_alike(corpus, model, monkeypatch):
    monkeypatch.setattr(measure, "CAP", 12)
    values, note = measure.decoding_ratios(model, *corpus, rounds=4)
    assert len(values) == 4 and note.endswith("28 of 28 translations equal")
    ours = ["a b"] * 200
    measure.same_translations(ours, dict(enumerate(ours[:-1] + ["c"])))  # a tie
    with pytest.raises(AssertionError, match="only 197 of 200 translations equal"):
        measure.same_translations(ours, dict(enumerate(ours[:-3] + ["c"] * 3)))


def test_what_a_search_costs(corpus, model, monkeypatch):
    """By a clock on which a beam of 5 takes twice as long as greedy decoding."""
    searched = []

    def translate_tokens(*arguments, **options):
        searched.append((options["beam_size"], options["length_penalty"]))
        return search(*arguments, **options)

    def seconds(function):
        function()
        return {1: 3.0, 5: 6.0}[searched[-1][0]]

    search = measure.translate_tokens
    monkeypatch.setattr(measure, "translate_tokens", translate_tokens)
    monkeypatch.setattr(measure, "seconds", seconds)
    monkeypatch.setattr(measure, "CAP", 12)
    beam, products = measure.search_rows(model, *corpus, rounds=2)
    assert beam["values"] == [2.5, 2.5] and "2.0 times the time" in beam["note"]
    assert set(searched) == {(1, 0.0), (5, 1.0)}
    assert all(0 < share < 1 for share in products["values"])
    a = torch.ones(500, 500)
    assert measure.product_share(lambda: [a @ a for _ in range(9)]) > 0.5
    assert measure.product_share(lambda: [a.exp() for _ in range(9)]) == 0


def test_a_row_without_values_says_why(monkeypatch):
    def no_data(*_):
        raise ConnectionError("no network")

    monkeypatch.setattr(measure, "load_multi30k", no_data)
    lost = measure.exponents("growth", "S·T", [10, 20], [[-1, 2], [3, -1]])
    assert lost["note"] == "2 of 2 rounds were lost in the noise"
    for row in [*measure.real_text(QUICK), lost]:
        line = report.table([row]).splitlines()[-1]
        assert "| not measured | 0 |  |" in line and len(row["note"].split()) > 5


def test_exponents_of_known_curves():
    x = torch.tensor([10.0, 20, 40]).numpy()
    found = measure.exponents("growth", "x", x, [3 * x, x - 30, x**2])
    assert found["values"] == pytest.approx([1, 2])
    rows = measure.growth(QUICK)
    assert [row["against"] for row in rows] == ["S·T", "S + T"]


def test_a_wrong_part_is_found(monkeypatch):
    rows = measure.parts_alone(QUICK)
    assert [len(row["values"]) for row in rows] == [QUICK.rounds] * 3
    monkeypatch.setattr(measure, "masked_softmax", lambda X, lens: X.softmax(-1) * 1.01)
    with pytest.raises(AssertionError, match="the sides differ"):
        measure.parts_alone(QUICK)


@pytest.mark.skipif(memory.peak_megabytes() is None, reason="only Linux tells")
def test_memory_counts_what_is_allocated():
    script = (
        "import sys, torch; sys.path.insert(0, sys.argv[1]); import memory\n"
        "before = memory.peak_megabytes(); x = torch.ones(50_000_000); del x\n"
        "print(memory.peak_megabytes() - before)"
    )
    command = [sys.executable, "-c", script, str(report.FOLDER)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 190 < float(done.stdout) < 215  # 200 MB
    taken = memory.in_a_process("by hand", 4, TINY)
    assert 0 < taken["before"] <= taken["peak"]


def test_a_notebook_is_executed_and_its_slow_cells_are_named(tmp_path):
    cells = map(new_code_cell, ["import time", "time.sleep(0.3)\n1 + 1", ""])
    path = tmp_path / "00_small.ipynb"
    nbformat.write(new_notebook(cells=[*cells, new_markdown_cell("Two words")]), path)
    before = path.read_bytes()
    measured = notebooks_command.in_a_process(path)
    slow = measured["cells"][-1]
    assert (measured["text_and_code"], measured["words"]) == (4, 2)
    assert measured["name"] == "00_small" and measured["seconds"] > slow["seconds"]
    assert slow["number"] == 2 and slow["seconds"] >= 0.3 and not slow["bar"]
    assert measured["megabytes"] is None or measured["megabytes"] > 10
    assert measured["cpu_seconds"] is None or measured["cpu_seconds"] > 0.1
    assert path.read_bytes() == before


@pytest.mark.skipif(not (hasattr(os, "geteuid") and os.geteuid() == 0), reason="root")
def test_a_small_machine_is_small(tmp_path):
    """No network but itself, one processor, no writing; and too much memory kills."""
    (tmp_path / "course").mkdir()

    def confined(code, group):
        command = [*notebooks_command.SMALL, sys.executable, "-c", code]
        places = {"GROUP": str(group), "COURSE": str(tmp_path / "course")}
        environment = os.environ | places
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    try:
        with notebooks_command.memory_group() as group:
            processors = "import os; print(len(os.sched_getaffinity(0)))"
            assert confined(processors, group).stdout == "1\n"
            far = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"
            assert "Network is unreachable" in confined(far, group).stderr
            write = f"open({str(tmp_path / 'course' / 'x')!r}, 'w')"
            assert "Read-only file system" in confined(write, group).stderr
            assert confined("bytearray(5 * 10**8)", group).returncode == 0
            assert confined("bytearray(12 * 10**8)", group).returncode == -9
    except OSError as error:
        pytest.skip(f"no control groups here: {error}")


# --- tables -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values, target, verdict",
    [
        ([1.6, 1.7, 9.0], 1.7, "≥ 1.7× | **1.7×** (1.6 to 9) | 3 | met"),
        ([1.6, 1.69, 9.0], 1.7, "≥ 1.7× | **1.69×** (1.6 to 9) | 3 | missed"),
        ([1.0, 2.0, 3.0], None, " | **2×** (1 to 3) | 3 | "),
    ],
)
def test_a_verdict_goes_by_the_median(values, target, verdict):
    row = measure.row("a step", "d2l", values, target, note="in words")
    head, rule, line = report.table([row]).splitlines()
    assert line == f"| a step | d2l | {verdict} | in words |"
    assert head.count("|") == rule.count("|") == line.count("|")


def test_the_stored_tables_are_the_commands(tmp_path):
    """No figure in them was written by hand; and a run changes its own table alone."""
    for path in report.FOLDER.glob("*.json"):
        shutil.copy(path, tmp_path)
    readme = tmp_path / "README.md"
    shutil.copy(report.FOLDER / "README.md", readme)
    before = readme.read_text(encoding="utf-8")
    report.write_readme(tmp_path)
    assert readme.read_text(encoding="utf-8") == before
    stored = json.loads((tmp_path / "small.json").read_text(encoding="utf-8"))
    stored["notebooks"] *= 10
    report.store(tmp_path / "small.json", stored)
    report.write_readme(tmp_path)
    after = readme.read_text(encoding="utf-8")
    small = re.compile(r"<!-- small.json -->.*<!-- end of small.json -->", re.DOTALL)
    assert small.sub("", after) == small.sub("", before)
    assert "target at most 30: missed." in small.search(after)[0]
    readme.write_text("no places", encoding="utf-8")
    with pytest.raises(ValueError, match="has no place for results.json"):
        report.write_readme(tmp_path)


def test_slow_cells_are_named_and_only_the_core_is_added_up():
    cells = [{"number": n, "seconds": s, "bar": n == 3} for n, s in ((3, 41), (4, 0.3))]
    size = {"text_and_code": 80, "words": 3000}
    books = [
        {"name": "05_training", "seconds": 80.0, "megabytes": 700.0, "cells": cells},
        {"name": "07_more", "seconds": 900.0, "megabytes": None, "cells": []},
    ]
    books = [book | size for book in books]
    text = report.notebooks_text({"notebooks": books})
    assert "- 05_training, cell 3: 41 s, with a progress bar" in text
    assert "cell 4" not in text and "| 07_more | 80 | 3000 | 900.0 |  | 0.0 |" in text
    assert "1 of the 7 core notebooks (00 to 06) take 1.3 minutes" in text
    assert "at most 5: met" in text


def test_the_stored_results_are_no_quick_run():
    stored = json.loads((report.FOLDER / "results.json").read_text(encoding="utf-8"))
    assert not stored["quick"]
    assert all(len(row["values"]) >= 7 for row in stored["rows"] if row["values"])


def test_the_notebooks_say_how_long_their_cells_run():
    """Their first lines against the stored measurement; "a minute" is 60 seconds.

    Within a factor of two, as one machine of two cores differs from another.
    """
    stored = json.loads((report.FOLDER / "notebooks.json").read_text(encoding="utf-8"))
    for book in stored["notebooks"]:
        path = notebooks_command.ROOT / "notebooks" / f"{book['name']}.ipynb"
        said = " ".join(nbformat.read(path, 4).cells[0].source.split())
        found = re.search(r"the cells run in about (a minute|(\d+) seconds)", said)
        seconds = int(found[2] or 60)
        close = abs(seconds - book["seconds"]) < 10
        assert close or 0.5 < book["seconds"] / seconds < 2, book["name"]
