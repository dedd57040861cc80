"""The benchmarks, with tiny sizes: do both sides do the same work, and is the table
what the numbers say? Nothing here asserts a speed.
"""

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import torch

FOLDER = Path(__file__).resolve().parents[2] / "tools" / "benchmarks"
sys.path.insert(0, str(FOLDER))

import limit  # noqa: E402
import measure  # noqa: E402
import memory  # noqa: E402
import one_notebook  # noqa: E402
import report  # noqa: E402
import sides  # noqa: E402
import timing  # noqa: E402

import notebooks as notebooks_command  # noqa: E402
from utils.data import Batch, Pair
from utils.text import EOS_ID, PAD_ID, Vocab  # noqa: E402

TINY = sides.Sizes(V=30, E=4, H=6, B=5)


def both(S=6, padded=False):
    model = sides.our_model(TINY)
    return model, sides.reference(model), sides.random_batch(TINY, S, padded=padded)


# --- the sides ------------------------------------------------------------------


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("S", [4, 9])
def test_a_random_batch_has_the_lengths_it_says(S, padded):
    batch = sides.random_batch(sides.Sizes(V=30, B=64), S, padded=padded)
    for ids, lens in (
        (batch.source, batch.source_lens),
        (batch.target_out, batch.target_lens),
    ):
        assert ids.shape == (64, S) and lens.max() == S
        assert ((ids != PAD_ID).sum(1) == lens).all()
        assert ((ids == EOS_ID).sum(1) == 1).all()
        assert lens.min() == (S // 2 if padded else S)


@pytest.mark.parametrize("padded", [False, True])
def test_both_sides_do_the_same_work(padded):
    sides.check_same_step(*both(padded=padded))


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("part", ["encoder.rnn", "decoder.attention", "decoder.dense"])
def test_other_weights_are_found(part, padded):
    model, net, batch = both(padded=padded)
    with torch.no_grad():
        next(net.get_submodule(part).parameters())[0] += 0.1
    with pytest.raises(AssertionError, match="they don't do the same work"):
        sides.check_same_step(model, net, batch)


@pytest.mark.parametrize(
    "change, what",
    [
        (lambda loss: 1.01 * loss, "^loss"),
        (lambda loss: 2 * loss - loss.detach(), "^gradient of"),  # the value stays
    ],
)
def test_another_loss_or_gradient_is_found(monkeypatch, change, what):
    right = sides.batch_loss
    monkeypatch.setattr(sides, "batch_loss", lambda *a: change(right(*a)))
    with pytest.raises(AssertionError, match=what):
        sides.check_same_step(*both(padded=True))


def test_a_start_after_the_padding_is_found(monkeypatch):
    """d2l as it is, on a padded batch: its decoder starts from another state."""
    model, net, batch = both(padded=True)
    as_it_is = lambda net, b: net(b.source, b.target_in, b.source_lens)[0]  # noqa: E731
    monkeypatch.setattr(sides, "scores_from_our_start", as_it_is)
    with pytest.raises(AssertionError, match="scores: the sides differ"):
        sides.check_same_step(model, net, batch)


def test_nan_is_a_difference():
    nan, one = torch.tensor([float("nan")]), torch.ones(1)
    with pytest.raises(AssertionError, match="x: the sides differ"):
        sides.close(nan, one, 1e-4, "x")


def test_both_steps_change_all_weights():
    model, net, batch = both(S=8)
    optimizer = sides.reference_optimizer(net)
    before = [[p.detach().clone() for p in m.parameters()] for m in (model, net)]
    sides.our_step(model, batch)()
    sides.reference_step(net, batch, optimizer)
    for module, old in zip((model, net), before, strict=True):
        for (name, new), then in zip(module.named_parameters(), old, strict=True):
            assert not torch.equal(new, then), name


def test_the_limit_lists_the_products_of_the_model(monkeypatch):
    """Counted against the weights: each is read by every word that meets it."""
    counted = []
    for name in ("mm", "bmm", "mv"):
        original = getattr(torch, name)

        def count(a, b, out, original=original):
            counted.append(a.numel() * (b.shape[-1] if b.dim() > 1 else 1))
            return original(a, b, out=out)

        monkeypatch.setattr(torch, name, count)
    S, T = 5, 7
    V, E, H, B = TINY
    limit.matrix_products(TINY, S, T)()
    weights = {
        name: p.numel()
        for name, p in sides.our_model(TINY).named_parameters()
        if p.dim() == 2 and "embedding" not in name and "w_v" not in name
    }
    words = {name: B * T for name in weights} | {
        name: B * S for name in weights if name.startswith("encoder") or "W_k" in name
    }
    multiplications = sum(weights[name] * words[name] for name in weights)
    assert sum(counted) == 3 * (multiplications + B * T * S * H)
    without = sum(counted)
    counted.clear()
    limit.matrix_products(TINY, S, T, with_scores=True)()
    assert sum(counted) == without + 2 * B * S * T * H


# --- translation, the epoch -----------------------------------------------------


@pytest.fixture
def corpus():
    """Pairs of words of unequal lengths, and their vocabularies."""
    words = "abcdefgh"
    pairs = [
        Pair(tuple(words[i:j]), tuple(reversed(words[i : j + 1])))
        for i, j in itertools.combinations(range(len(words)), 2)
    ]
    vocabs = tuple(
        Vocab([pair[side] for pair in pairs], lang)
        for side, lang in enumerate(("de", "en"))
    )
    return pairs, vocabs


def small_model(vocabs):
    """Untrained, but for one thing that training teaches: never write <pad>."""
    torch.manual_seed(0)
    model = measure.build_model("attention", *map(len, vocabs), 8, 16)
    with torch.no_grad():
        model.decoder.dense.bias[PAD_ID] = -100
    return model


def test_an_epoch_counts_the_same_words_on_both_sides(corpus):
    pairs, vocabs = corpus
    settings = measure.QUICK._replace(pairs=3, sizes=TINY)
    values, note = measure.epoch_ratios(small_model(vocabs), pairs, vocabs, settings)
    assert len(values) == 3 and all(value > 0 for value in values)
    assert "at 9 steps" in note  # 8 words at most, and <eos>


def test_fixed_length_cuts_nothing(corpus):
    pairs, vocabs = corpus
    whole, fixed = Batch.from_pairs(pairs, *vocabs), measure.fixed_length(*corpus)
    assert fixed.source.shape == fixed.target_in.shape == fixed.target_out.shape
    for name in ("source", "target_in", "target_out"):
        before, after = getattr(whole, name), getattr(fixed, name)
        assert torch.equal(after[:, : before.shape[1]], before)
        assert (after[:, before.shape[1] :] == PAD_ID).all()


def test_both_sides_translate_alike(corpus, monkeypatch):
    monkeypatch.setattr(measure, "CAP", 12)
    pairs, vocabs = corpus
    values, note = measure.decoding_ratios(small_model(vocabs), pairs, vocabs, pairs=4)
    assert len(values) == 4
    count = re.search(r"(\d+) of (\d+) translations equal, (\d+) differ", note)
    equal, of, different = map(int, count.groups())
    assert of == len(pairs) == equal + different


def test_a_wrong_translation_is_found(corpus, monkeypatch):
    monkeypatch.setattr(measure, "CAP", 12)
    pairs, vocabs = corpus
    model = small_model(vocabs)
    sentences = [list(pair.source) for pair in pairs[:3]]
    right = measure.translate_tokens(model, sentences, *vocabs, max_steps=12)
    theirs = {i: " ".join(result.words) for i, result in enumerate(right)}
    note = measure.same_translations(model, sentences, theirs, vocabs)
    assert note.startswith("3 of 3 translations equal, 0 differ")
    theirs[1] = " ".join(["c" if right[1].tokens[0] != "c" else "d", "a"])
    monkeypatch.setattr(measure, "TIE", 1e-9)
    with pytest.raises(AssertionError, match="sentence 1: "):
        measure.same_translations(model, sentences, theirs, vocabs)
    monkeypatch.setattr(measure, "TIE", 1e9)  # now any two words are a tie
    note = measure.same_translations(model, sentences, theirs, vocabs)
    assert note.startswith("2 of 3 translations equal, 1 differ")


def test_missing_data_is_said(monkeypatch):
    def no_data(*_):
        raise ConnectionError("no network")

    monkeypatch.setattr(measure, "load_multi30k", no_data)
    rows = measure.real_text(measure.QUICK)
    assert [row["target"] for row in rows] == [5, 30]
    for row in rows:
        line = report.table_line(row)
        assert "not measured" in line and "data missing" in line
        assert "met" not in line.replace("not measured", "").split()


# --- the parts alone, growth, memory ----------------------------------------------


def test_the_grid_compares_equal_results():
    settings = measure.QUICK._replace(grid=((2,), (1, 3), (4,), (5,)), min_seconds=0)
    rows, points = measure.parts_alone(settings)
    assert len(rows) == 4 and len(points) == 2 * 2 * 4  # parts, sizes, choices
    for row in rows:
        once = settings.grid_pairs
        assert len(row["values"]) in (once, 3 * once)  # looked slow: measured again


def test_a_wrong_part_is_found(monkeypatch):
    monkeypatch.setattr(measure, "masked_softmax", lambda X, lens: X.softmax(-1) * 1.01)
    with pytest.raises(AssertionError, match="the sides differ"):
        measure.parts_alone(measure.QUICK)


def test_exponents_of_known_curves():
    x = torch.tensor([10.0, 20, 40]).numpy()
    assert measure.exponents(x, [3 * x, x**2]) == pytest.approx([1, 2])
    assert measure.exponents(x, [x, [1, -1, 2]]) == []


def test_memory_counts_what_is_allocated():
    script = (
        "import sys, torch; sys.path.insert(0, sys.argv[1]); import memory\n"
        "before = memory.peak_megabytes(); x = torch.ones(50_000_000); del x\n"
        "print(memory.peak_megabytes() - before)"
    )
    done = memory.subprocess.run(
        [sys.executable, "-c", script, str(FOLDER)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert 190 < float(done.stdout) < 215  # 200 MB


@pytest.mark.parametrize("side", ["ours", "d2l"])
def test_a_side_tells_its_memory(side):
    taken = memory.in_a_process(side, 4, TINY)
    assert 0 < taken["before"] <= taken["peak"]
    assert taken["python"] > 0


# --- timing and tables ------------------------------------------------------------


def test_the_sides_take_turns():
    calls = []
    first, second = timing.alternate(
        lambda: calls.append("a") or 2.0, lambda: calls.append("b") or 3.0, 3
    )
    assert "".join(calls) == "ab" + "abbaab"
    assert timing.ratios(second, first) == [1.5] * 3
    with pytest.raises(ValueError, match="at least one pair"):
        timing.alternate(None, None, 0)


@pytest.mark.parametrize(
    "values, target, at_most, verdict",
    [
        ([1.6, 1.7, 9.0], 1.7, False, "met"),
        ([1.6, 1.69, 9.0], 1.7, False, "missed"),
        ([0.1, 0.2, 0.9], 0.2, True, "met"),
        ([0.1, 0.21, 0.2], 0.2, True, "met"),
        ([0.1, 0.21, 0.3], 0.2, True, "missed"),
        ([1.0, 2.0, 3.0], None, False, ""),
    ],
)
def test_a_verdict_goes_by_the_median(values, target, at_most, verdict):
    row = measure.row("what", "whom", values, target, at_most)
    middle, low, high, found = report.summary(row)
    assert (middle, low, high) == (sorted(values)[1], min(values), max(values))
    assert found == verdict
    cells = [cell.strip() for cell in report.table_line(row).split("|")]
    assert cells[5:7] == ["3", verdict]
    goal = f"{'≤' if at_most else '≥'} {target:g}×" if target else ""
    assert cells[3] == goal


def test_every_line_has_as_many_cells_as_the_head():
    rows = [measure.row("a", "b", []), measure.row("a", "b", [1.0], 2, note="n")]
    lines = report.table(rows).splitlines()
    assert len(lines) == 4 and {line.count("|") for line in lines} == {8}


BOOKS = {
    "machine": timing.machine(),
    "notebooks": [
        {
            "name": "05_training",
            "seconds": 80.0,
            "megabytes": 700.0,
            "cells": [
                {
                    "number": 3,
                    "heading": "A run",
                    "line": "fit()",
                    "seconds": 41.0,
                    "bar": True,
                },
                {
                    "number": 4,
                    "heading": "B",
                    "line": "x",
                    "seconds": 0.1,
                    "bar": False,
                },
            ],
        },
        {"name": "07_more", "seconds": 900.0, "megabytes": None, "cells": []},
    ],
}


def test_slow_cells_are_named_and_only_the_core_is_added_up():
    text = report.notebooks_text(BOOKS)
    assert "- 05_training, cell 3, *A run*: 41 s, `fit()`, with a progress bar" in text
    assert "cell 4" not in text
    assert "1 of the 7 core notebooks (00 to 06) take 1.3 minutes" in text
    assert "at most 5: met" in text


def test_the_default_batch_size_is_judged_from_the_data():
    runs = [[10, 90, 100]] * 3
    measured = {"batch_sizes": [1, 64, 256], "tokens_a_second": {1: runs}}
    text = report.batch_size_text(measured)
    assert "batches of 256, 100; the default of 64 reaches 90% of it; 64 is" in text


def test_the_readme_is_made_from_what_is_stored(tmp_path):
    results = {
        "quick": True,
        "machine": timing.machine(),
        "rows": [measure.row("a step", "d2l", [2.0, 2.5, 3.0], 2)],
        "batches": {"batch_sizes": [1, 64], "tokens_a_second": {1: [[5.0, 9.0]]}},
    }
    report.store(tmp_path / "results.json", results)
    report.store(tmp_path / "notebooks.json", BOOKS)
    report.write_readme(tmp_path)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| a step | d2l | ≥ 2× | **2.50×** (2.00 to 3.00) | 3 | met |" in text
    assert "no measurements" in text and "05_training" in text
    calm = report.readme({**results, "quick": False}, None, None, None, None)
    assert "no measurements" not in calm


def test_a_small_machine_has_half_an_hour():
    books = [{"name": "00", "seconds": 9.0, "cpu_seconds": 1200.0, "megabytes": 400}]
    text = report.small_text({"notebooks": books})
    assert "| 00 | 9.0 | 1200.0 | 400 |" in text
    assert "All 1 take 20.0 minutes of one processor; target at most 30: met" in text
    assert "target at most 30: missed" in report.small_text({"notebooks": books * 2})


def test_a_class_is_summed_up():
    measured = {
        "learners": 2,
        "notebooks": ["00_a", "04_b"],
        "cells": 8,
        "failures": ["04_b, `x`: NameError: x"],
        "megabytes": [500.0, 700.0],
        "megabytes_together": 1100.0,
        "server_seconds": [3.0, 4.0],
        "seconds": [60.0, 90.0],
        "reconnections": 3,
        "slowest": {"seconds": 30.0, "notebook": "00_a", "line": "fit()"},
    }
    text = report.classroom_text(measured)
    assert "2 learners, notebooks 00 to 04, 8 cells: 1 failures" in text
    assert "500 to 700 MB" in text and "1.1 GB" in text
    assert "- Failed: 04_b, `x`: NameError: x" in text and "again: 3." in text
    assert "no failures" in report.classroom_text({**measured, "failures": []})


def test_the_way_from_a_clone_is_a_table():
    runs = {"cache full": {"install": 100.4, "lab": 5.0, "notebook": 9.6}}
    text = report.start_text({"runs": runs})
    assert "| cache full | 100 s | 5 s | 10 s |" in text


@pytest.mark.parametrize(
    "source, line",
    [
        ("try:\n    trainer.fit()\n", "trainer.fit()"),
        ("a, b = learn(corpus)\nfit(a)", "a, b = learn(corpus)"),
        ("profit(1)\nprint(2)", "profit(1)"),
    ],
)
def test_a_slow_cell_is_known_by_the_line_that_trains(source, line):
    assert one_notebook.line_that_waits(source) == line


@pytest.mark.skipif(not (hasattr(os, "geteuid") and os.geteuid() == 0), reason="root")
def test_a_small_machine_is_small(tmp_path):
    """No network but itself, one processor, no writing; and too much memory kills."""
    try:
        with notebooks_command.memory_group():
            pass
    except OSError as error:
        pytest.skip(f"no control groups here: {error}")
    (tmp_path / "course").mkdir()

    def confined(code, group):
        return subprocess.run(
            [
                "unshare",
                "--net",
                "--mount",
                "sh",
                "-c",
                notebooks_command.CONFINED,
                "sh",
                sys.executable,
                "-c",
                code,
            ],
            env={**os.environ, "GROUP": str(group), "COURSE": str(tmp_path / "course")},
            capture_output=True,
            text=True,
        )

    with notebooks_command.memory_group() as group:
        processors = "import os; print(len(os.sched_getaffinity(0)))"
        assert confined(processors, group).stdout == "1\n"
        far = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"
        assert "Network is unreachable" in confined(far, group).stderr
        write = f"open({str(tmp_path / 'course' / 'x')!r}, 'w')"
        assert "Read-only file system" in confined(write, group).stderr
        assert confined("bytearray(5 * 10**8)", group).returncode == 0
        assert confined("bytearray(12 * 10**8)", group).returncode == -9


def test_figures_are_drawn(tmp_path):
    seconds = {"attention": [[-1, 2], [1, 2]], "fixed": [[1, 2]] * 2}
    growing = {"lengths": [5, 10], **seconds}
    report.draw_growth(growing, tmp_path / "growth.png")
    speeds = {"batch_sizes": [1, 8], "tokens_a_second": {"1": [[1, 2]], "2": [[1, 3]]}}
    report.draw_batches(speeds, tmp_path / "batches.png")
    for name in ("growth.png", "batches.png"):
        assert (tmp_path / name).stat().st_size > 10_000


def test_the_stored_readme_is_the_commands():
    """No figure in it was written by hand."""
    stored = [report.read(FOLDER / name) for name in report.STORED]
    if not any(stored):
        pytest.skip("nothing is stored yet: make bench")
    written = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert written == report.readme(*stored)


def test_the_stored_results_come_from_the_script_as_it_is():
    path = FOLDER / "results.json"
    if not path.is_file():
        pytest.skip("nothing is stored yet: make bench")
    stored = json.loads(path.read_text(encoding="utf-8"))
    settings = measure.Settings()._asdict()
    assert stored["settings"] == json.loads(json.dumps(settings))
    assert not stored["quick"]
    assert all(len(row["values"]) >= 7 for row in stored["rows"] if row["values"])


def test_a_notebook_is_executed_and_its_cells_are_timed(tmp_path):
    cell, text = (
        getattr(nbformat.v4, f"new_{kind}_cell") for kind in ("code", "markdown")
    )
    book = nbformat.v4.new_notebook(
        cells=[text("# A title"), cell("import time"), cell("time.sleep(0.3)\n1 + 1")]
    )
    path = tmp_path / "00_small.ipynb"
    nbformat.write(book, path)
    before = path.read_bytes()
    measured = notebooks_command.in_a_process(path)
    assert measured["name"] == "00_small"
    first, second = measured["cells"]
    assert second["seconds"] >= 0.3 > first["seconds"]
    assert (second["number"], second["heading"]) == (2, "A title")
    assert second["line"] == "time.sleep(0.3)" and not second["bar"]
    assert measured["seconds"] > second["seconds"]
    assert measured["megabytes"] is None or measured["megabytes"] > 10
    assert measured["cpu_seconds"] is None or measured["cpu_seconds"] > 0.1
    assert path.read_bytes() == before


def test_the_notebooks_say_how_long_their_cells_run():
    """Their first lines against the stored measurement; "a minute" is 60 seconds."""
    stored = report.read(FOLDER / "notebooks.json")
    if not stored:
        pytest.skip("nothing is stored yet: make bench-notebooks")
    for book in stored["notebooks"]:
        path = FOLDER.parent / "notebooks" / f"{book['name']}.ipynb"
        said = " ".join(nbformat.read(path, 4).cells[0].source.split())
        found = re.search(r"the cells run in about (a minute|(\d+) seconds)", said)
        seconds = int(found[2] or 60)
        assert abs(seconds - book["seconds"]) < max(10, 0.5 * seconds), book["name"]
