"""The three tasks: what they draw is right, split honestly, and measured rightly."""

import importlib.util
import json
import math
import random
from datetime import date, datetime
from pathlib import Path

import pytest
import torch

from utils import tasks
from utils.corpora import load_village
from utils.data import Pair
from utils.models import build_model
from utils.tasks import Event

SIZES = {"train": 400, "valid": 50, "test": 80, "new": 50}
DRAWN = {
    "stories": tasks.stories({**SIZES, "long": 60}),
    "headlines": tasks.headlines({**SIZES, "long": 60}),
    "dates": tasks.dates({**SIZES, "form": 60}),
}
RESULTS = Path(__file__).resolve().parents[2] / "data" / "results"


def every_pair(corpus):
    return [pair for pairs in corpus.splits.values() for pair in pairs]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(RESULTS)
    spec = importlib.util.spec_from_file_location("task_results", RESULTS / "tasks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", DRAWN)
def test_no_source_is_drawn_twice_and_a_seed_draws_the_same_again(name):
    corpus = DRAWN[name]
    sources = [pair.source for pair in every_pair(corpus)]
    assert len(set(sources)) == len(sources)
    sizes = {split: len(pairs) for split, pairs in corpus.splits.items()}
    again = getattr(tasks, name)(sizes)
    assert again.splits == corpus.splits
    assert getattr(tasks, name)(sizes, seed=1).splits != corpus.splits


@pytest.mark.parametrize("name", DRAWN)
def test_links_stay_inside_and_every_word_has_one_but_marks(name):
    for pair in every_pair(DRAWN[name]):
        assert all(j < len(pair.source) for j, _ in pair.alignment)
        linked = {i for _, i in pair.alignment}
        marks = {i for i, word in enumerate(pair.target) if word in ("-", ",")}
        assert linked == set(range(len(pair.target))) - marks


@pytest.mark.parametrize("name", ["stories", "headlines"])
def test_the_words_are_those_of_the_village_corpus(name):
    village = load_village("en", "fr").vocabs()[0]
    words = {w for p in every_pair(DRAWN[name]) for w in (*p.source, *p.target)}
    assert {word for word in words if word not in village} <= {"where"}


@pytest.mark.parametrize("name", DRAWN)
def test_the_training_split_knows_every_token(name):
    src_vocab, tgt_vocab = DRAWN[name].vocabs()
    for pair in every_pair(DRAWN[name]):
        assert all(word in src_vocab for word in pair.source)
        assert all(word in tgt_vocab for word in pair.target)


# --- stories ---------------------------------------------------------------------

STORY = [
    Event("baker", "goes", "market"),
    Event("nurse", "takes", "key"),
    Event("baker", "walks", "garden"),
    Event("nurse", "runs", "school"),
    Event("nurse", "sends", "key", "baker"),
]


@pytest.mark.parametrize(
    ("kind", "name", "answer"),
    [
        ("person", "baker", ("garden", 2)),
        ("person", "nurse", ("school", 3)),
        ("holder", "key", ("baker", 4)),
        ("thing", "key", ("garden", 2)),
        ("person", "painter", None),
        ("holder", "hat", None),
        ("thing", "hat", None),
    ],
)
def test_the_last_fact_counts(kind, name, answer):
    assert tasks.last_fact(kind, name, STORY) == answer


def test_nobody_knows_where_a_thing_is_whose_holder_never_moved():
    assert tasks.last_fact("thing", "key", [Event("nurse", "takes", "key")]) is None


def test_a_question_is_asked_with_its_answer_linked():
    pair = tasks.ask("holder", "key", STORY)
    end = "the nurse sends the key to the baker . who has the key ?"
    assert " ".join(pair.source).endswith(end)
    assert pair.target == ("baker",) and pair.tags == {"holder"}
    ((j, i),) = pair.alignment
    assert (pair.source[j], i) == ("baker", 0) and j > 30  # not the first "baker"
    with pytest.raises(ValueError, match="the story doesn't say: where is the hat"):
        tasks.ask("thing", "hat", STORY)


def read_story(pair):
    """Question answered from the text alone, by another way than the program's."""
    where, holder = {}, {}
    text = " ".join(pair.source)
    *story, question = (part.split() for part in text.removesuffix(" ?").split(" . "))
    for words in story:
        who, verb = words[1], words[2]
        if verb in tasks.GOES:
            where[who] = words[-1]
        else:
            holder[words[4]] = words[-1] if verb == "sends" else who
    kind, name = question[0], question[-1]
    if kind == "who":
        return holder[name]
    return where[holder.get(name, name)]


def test_every_answer_follows_from_the_story():
    for pair in every_pair(DRAWN["stories"]):
        assert pair.target == (read_story(pair),)
        ((j, _),) = pair.alignment
        assert pair.source[j] == pair.target[0]


def test_things_are_sent_by_whoever_has_them():
    for seed in range(20):
        holder = {}
        for event in tasks.draw_events(10, random.Random(seed)):
            if event.verb == "takes":
                assert event.what not in holder
                holder[event.what] = event.who
            if event.verb == "sends":
                assert holder[event.what] == event.who != event.to
                holder[event.what] = event.to


def moves(pair):
    words = " ".join(pair.source)
    return {
        (who, place)
        for who, place in tasks.NEVER_THERE.items()
        for verb in tasks.GOES
        if f"the {who} {verb} to the {place} ." in words
    }


def test_held_out_moves_are_in_new_stories_only():
    for split, pairs in DRAWN["stories"].splits.items():
        assert all(bool(moves(pair)) == (split == "new") for pair in pairs)


def test_long_stories_are_longer_than_all_others():
    counts = {
        split: {pair.source.count(".") for pair in pairs}
        for split, pairs in DRAWN["stories"].splits.items()
    }
    assert counts["train"] == {2, 3, 4, 5}
    assert counts["long"] <= set(range(6, 11)) and len(counts["long"]) > 2


# --- headlines -------------------------------------------------------------------


def test_a_headline_follows_its_rule():
    small = {"the", *filter(None, sum(tasks.LOOKS.values(), ()))}
    for pair in every_pair(DRAWN["headlines"]):
        said = []
        for sentence in " ".join(pair.source).removesuffix(" .").split(" . "):
            when, clause = sentence.split(" , ")
            past = bool(set(clause.split()) & set(tasks.DEEDS))
            assert past == (when in tasks.ONCE) != (when in tasks.OFTEN)
            if past:
                kept = [tasks.DEEDS.get(w, w) for w in clause.split() if w not in small]
                said.append(" ".join(kept))
        assert " ".join(pair.target) == " , ".join(said)
        assert pair.tags == {f"{len(said)} news"}
        for j, i in pair.alignment:
            assert pair.target[i] in (pair.source[j], tasks.DEEDS.get(pair.source[j]))
        places = [j for j, _ in sorted(pair.alignment, key=lambda link: link[1])]
        assert places == sorted(places)


def test_news_may_stand_anywhere_and_fill_all_or_one():
    train = DRAWN["headlines"]["train"]
    four = [pair for pair in train if pair.source.count(".") == 4]
    firsts = {pair.source[: min(pair.alignment)[0]].count(".") for pair in four}
    assert firsts == {0, 1, 2, 3}
    assert {tag for pair in four for tag in pair.tags} == {
        f"{n} news" for n in range(1, 5)
    }


def test_held_out_headlines_are_in_new_only():
    held_out = set(zip(tasks.REPORTERS, tasks.GOODS, strict=True))
    for split, pairs in DRAWN["headlines"].splits.items():
        for pair in pairs:
            for item in " ".join(pair.target).split(" , "):
                who, _, what, *_ = item.split()
                assert ((who, what) in held_out) == (split == "new")


# --- dates -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("{d} {mon} {year}", "7␣mar␣1998"),
        ("{dd}/{mm}/{year}", "07/03/1998"),
        ("{weekday}, {d} {month} {year}", "saturday,␣7␣march␣1998"),
        ("the {nth} of {month} {year}", "the␣7th␣of␣march␣1998"),
    ],
)
def test_a_date_is_written_in_its_form(form, text):
    pair = tasks.write_date(date(1998, 3, 7), form)
    assert "".join(pair.source) == text and "".join(pair.target) == "1998-03-07"
    assert pair.tags == {form}


@pytest.mark.parametrize(
    ("n", "ending"), [(1, "st"), (2, "nd"), (3, "rd"), (11, "th"), (22, "nd")]
)
def test_ordinals(n, ending):
    assert tasks.date_parts(date(1999, 1, n))["nth"] == f"{n}{ending}"


def test_digits_are_linked_with_their_digits_and_months_with_their_names():
    pair = tasks.write_date(date(1998, 3, 7), "{d} {mon} {year}")
    linked = {i: sorted(j for j, k in pair.alignment if k == i) for i in range(10)}
    assert linked[0] == [6] and linked[3] == [9]  # year, digit by digit
    assert linked[5] == linked[6] == [2, 3, 4]  # m, a, r
    assert linked[8] == linked[9] == [0]  # both digits of 07 from the one written
    assert linked[4] == linked[7] == []
    pair = tasks.write_date(date(1998, 12, 17), "{dd}/{mm}/{year}")
    assert {(0, 8), (1, 9), (3, 5), (4, 6)} <= pair.alignment


def test_dates_are_true_and_no_day_of_a_test_is_in_training():
    days = {}
    for split, pairs in DRAWN["dates"].splits.items():
        days[split] = {"".join(pair.target) for pair in pairs}
        for pair in pairs:
            day, text = date.fromisoformat("".join(pair.target)), "".join(pair.source)
            if "day,␣" in text:  # the weekday is the calendar's
                read = datetime.strptime(text, "%A,␣%d␣%B␣%Y")
                assert read.date() == day and text.startswith(f"{day:%A}".lower())
    for split in ("valid", "test", "new", "form"):
        assert not days["train"] & days[split]
    assert min(days["new"]) > "2020" > max(days["train"])
    forms = {tag for pair in DRAWN["dates"]["form"] for tag in pair.tags}
    assert forms == set(tasks.NEW_FORMS) and not forms & set(tasks.DATE_FORMS)


# --- what they share -------------------------------------------------------------


@pytest.mark.parametrize("size", [0, -1, 2.5, "3"])
def test_sizes_are_checked(size):
    with pytest.raises(ValueError, match="split 'test' needs a whole number from 1"):
        tasks.dates({"train": 3, "test": size})


def test_drawing_ends_when_nothing_new_is_left():
    def draw(split, rng):
        return Pair((str(rng.randrange(5)),), ("x",))

    with pytest.raises(ValueError, match="6 different sources .* after 5 hardly"):
        tasks.draw_splits({"train": 6}, draw, 0)
    with pytest.raises(ValueError, match="split 'test'"):  # over all splits together
        tasks.draw_splits({"train": 4, "test": 2}, draw, 0)


PAIR = Pair(tuple("a . b c .".split()), ("x", "y", "z"), frozenset({(2, 0), (3, 2)}))
WEIGHTS = torch.tensor(
    [
        [0.1, 0.1, 0.6, 0.1, 0.1],
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [0.5, 0.1, 0.0, 0.3, 0.1],
    ]
)


def test_attention_on_gold_counts_linked_words_only():
    figures = tasks.attention_on_gold([WEIGHTS], [PAIR])
    assert figures == pytest.approx(((0.6 + 0.3) / 2, 0.5, 0.2))
    wide = tasks.attention_on_gold([WEIGHTS], [tasks.whole_sentences(PAIR)])
    assert wide == pytest.approx(((0.8 + 0.4) / 2, 0.5, 0.6))


def test_whole_sentences_end_with_their_stops():
    wide = tasks.whole_sentences(PAIR)
    assert wide.alignment == {(j, i) for j in (2, 3, 4) for i in (0, 2)}
    assert wide._replace(alignment=PAIR.alignment) == PAIR


def test_attention_without_links_is_an_error():
    with pytest.raises(ValueError, match="nothing to measure"):
        tasks.attention_on_gold([WEIGHTS], [PAIR._replace(alignment=frozenset())])


def test_reference_weights_are_those_of_each_pair_alone():
    corpus = DRAWN["stories"]
    vocabs = corpus.vocabs()
    torch.manual_seed(0)
    model = build_model("attention", *map(len, vocabs), 8, 8)
    some = corpus["test"][:5]
    together = tasks.teacher_forced_weights(model, some, vocabs, batch_size=3)
    for weights, pair in zip(together, some, strict=True):
        assert weights.shape == (len(pair.target), len(pair.source))
        (alone,) = tasks.teacher_forced_weights(model, [pair], vocabs)
        torch.testing.assert_close(weights, alone)


@pytest.mark.parametrize(
    ("places", "share"), [([0, 1, 1, 5], 1), ([3, 2, 1], 0), ([6, 7, 0, 1, 2], 0.75)]
)
def test_forward_share(places, share):
    assert tasks.forward_share(places) == share


def test_forward_share_of_one_place_is_unknown():
    assert math.isnan(tasks.forward_share([4]))


def test_exact_match():
    assert tasks.exact_match([["a"], ["b", "c"]], [("a",), ("b",)]) == 0.5
    with pytest.raises(ValueError, match="1 hypotheses and 2 references"):
        tasks.exact_match([["a"]], [["a"], ["b"]])
    with pytest.raises(ValueError, match="at least one sentence"):
        tasks.exact_match([], [])


def test_rouge_of_a_case_counted_by_hand():
    reference = ["baker", "sells", "old", "box"]
    scores = tasks.rouge([["baker", "sells", "box"]], [reference])
    assert scores["rouge1"] == pytest.approx(100 * 2 * 3 / 7)  # 3 of 3, and 3 of 4
    assert scores["rouge2"] == pytest.approx(100 * 2 * 1 / 5)  # 1 of 2, and 1 of 3
    assert scores["rougeL"] == pytest.approx(100 * 2 * 3 / 7)
    turned = tasks.rouge([["b", "a"]], [["a", "b"]])
    assert turned == pytest.approx({"rouge1": 100, "rouge2": 0, "rougeL": 50})
    with pytest.raises(ValueError, match="give one of each, for"):
        tasks.rouge([["a"]], [])


# --- the stored results ----------------------------------------------------------


def test_the_tasks_were_measured_by_the_script_as_it_is(script):
    stored = json.loads(script.PATH.read_text(encoding="utf-8"))
    assert stored["settings"] == script.SETTINGS
    assert [run["run"] for run in stored["runs"]] == script.RUNS
    steps = {}
    for run in stored["runs"]:
        task, kind = run["run"]["task"], run["run"]["kind"]
        steps.setdefault(task, set()).add(run["steps"])
        sizes = script.SETTINGS[task]["sizes"]
        assert list(run["splits"]) == list(sizes)[1:]
        for split, found in run["splits"].items():
            assert found["all"]["count"] == sizes[split]
            for figures in found.values():
                assert 0 <= figures["exact"] <= 1
                assert ("attention" in figures) == (kind == "attention")
    assert all(len(equal) == 1 for equal in steps.values())  # an equal budget


def test_the_script_scores_a_model(script, monkeypatch):
    monkeypatch.setattr(script, "corpus", DRAWN.get)
    for task in DRAWN:
        plan = {"num_epochs": 1, "lr": 1e-3}
        settings = {**script.SETTINGS, task: plan, "batch_size": 200}
        figures = script.run(task, "attention", 0, settings)
        assert figures["steps"] == 2 and 0 < figures["untrained"]["mass"] < 1
        found = figures["splits"]["test"]["all"]
        assert found["count"] == 80 and 0 <= found["attention"]["hits"] <= 1
