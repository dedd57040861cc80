"""The three tasks: what they draw is right, split honestly, and measured rightly."""

from datetime import date
from functools import cache

import pytest

from utils import tasks
from utils.corpora import load_village

SIZES = {"train": 400, "valid": 50, "test": 80, "new": 50}
OTHER = {"stories": "long", "headlines": "long", "dates": "form"}


@cache
def drawn(name):
    return getattr(tasks, name)({**SIZES, OTHER[name]: 60})


@pytest.mark.parametrize("name", OTHER)
def test_what_all_tasks_share(name):
    """A seed draws the same again, no source twice; links and words are known."""
    corpus, small = drawn(name), {"train": 30, "test": 8}
    pairs = sum(corpus.splits.values(), [])
    assert len({pair.source for pair in pairs}) == len(pairs) == 640
    splits = [getattr(tasks, name)(small, seed).splits for seed in (0, 0, 1)]
    assert splits[0] == splits[1] != splits[2]
    known = [vocab.token_to_idx.keys() for vocab in corpus.vocabs()]  # of training
    for pair in pairs:
        assert {*pair.source} <= known[0] and {*pair.target} <= known[1]
        assert all(j < len(pair.source) for j, _ in pair.alignment)
        marks = {i for i, word in enumerate(pair.target) if word in ("-", ",")}
        assert {i for _, i in pair.alignment} == set(range(len(pair.target))) - marks


def read_story(pair):
    """Answer from the text alone, by another way than the program's; its sentence."""
    where, holder = {}, {}
    *story, question = " ".join(pair.source).removesuffix(" ?").split(" . ")
    for n, words in enumerate(map(str.split, story)):
        who, verb = words[1], words[2]
        if verb in tasks.GOES:
            where[who] = words[-1], n
        elif verb == "took":
            assert words[4] not in holder
            holder[words[4]] = who, n
        else:  # whoever has it sends it
            assert holder[words[4]][0] == who != words[-1]
            holder[words[4]] = words[-1], n
    kind, *_, name = question.split()
    return holder[name] if kind == "who" else where[holder.get(name, [name])[0]]


def test_every_answer_follows_from_the_story_and_tests_hold_what_they_promise():
    for split, pairs in drawn("stories").splits.items():
        for pair in pairs:
            answer, number = read_story(pair)
            ((j, _),) = pair.alignment
            assert pair.target == (pair.source[j],) == (answer,)
            assert pair.source[:j].count(".") == number  # the last fact is linked
            held_out = any(
                f"the {who} {verb} to the {place} ." in " ".join(pair.source)
                for who, place in tasks.NEVER_THERE.items()
                for verb in tasks.GOES
            )
            assert held_out == (split == "new")
        counts = {pair.source.count(".") for pair in pairs}
        assert counts <= set(range(6, 11) if split == "long" else range(2, 6))


def test_a_headline_follows_its_rule():
    small = {"the", *filter(None, sum(tasks.LOOKS.values(), ()))}
    held_out = set(zip(tasks.REPORTERS, tasks.GOODS, strict=True))
    for split, pairs in drawn("headlines").splits.items():
        for pair in pairs:
            said = []
            for sentence in " ".join(pair.source).removesuffix(" .").split(" . "):
                when, clause = sentence.split(" , ")
                past = bool(set(clause.split()) & set(tasks.DEEDS))
                assert past == (when in tasks.ONCE) != (when in tasks.OFTEN)
                if past:
                    kept = [w for w in clause.split() if w not in small]
                    said.append([tasks.DEEDS.get(w, w) for w in kept])
                    assert ((kept[0], kept[2]) in held_out) == (split == "new")
            assert " ".join(pair.target) == " , ".join(map(" ".join, said))
            assert pair.tags == {f"{len(said)} news"}
            for j, i in pair.alignment:
                word = pair.source[j]
                assert pair.target[i] == tasks.DEEDS.get(word, word)
            order = [j for j, _ in sorted(pair.alignment, key=lambda link: link[1])]
            assert order == sorted(order)  # in no other sentence with the same word


@pytest.mark.parametrize(
    "day, form, text",
    [
        ("1998-03-07", "{d} {mon} {year}", "7␣mar␣1998"),
        ("1998-03-07", "{weekday}, {dd}/{mm}", "saturday,␣07/03"),
        ("1998-03-01", "the {nth} of {month}", "the␣1st␣of␣march"),
        ("1998-03-11", "{nth}", "11th"),
        ("1998-03-22", "{nth}", "22nd"),
        ("1998-03-13", "{nth}", "13th"),
    ],
)
def test_a_date_is_written_in_its_form(day, form, text):
    pair = tasks.write_date(date.fromisoformat(day), form)
    assert pair[:4] == (tuple(text), tuple(day), pair.alignment, {form})


def test_digits_are_linked_with_their_digits_and_months_with_their_names():
    pair = tasks.write_date(date(1998, 3, 7), "{d} {mon} {year}")
    month = {(j, i) for j in (2, 3, 4) for i in (5, 6)}  # m, a, r
    year = {(6, 0), (7, 1), (8, 2), (9, 3)}
    assert pair.alignment == {*year, *month, (0, 8), (0, 9)}  # 07 from the one written
    pair = tasks.write_date(date(1998, 12, 17), "{dd}/{mm}")
    assert pair.alignment == {(0, 8), (1, 9), (3, 5), (4, 6)}


def test_dates_are_true_and_no_day_of_a_test_is_in_training():
    days = {}
    for split, pairs in drawn("dates").splits.items():
        days[split] = {"".join(pair.target) for pair in pairs}
        for pair in pairs:
            day, text = date.fromisoformat("".join(pair.target)), "".join(pair.source)
            if "day,␣" in text:  # the weekday is the calendar's
                assert text == f"{day:%A},␣{day.day}␣{day:%B}␣{day.year}".lower()
            assert (pair.tags <= set(tasks.NEW_FORMS)) == (split == "form")
    assert not any(days["train"] & days[split] for split in days if split != "train")
    assert min(days["new"]) > "2020" > max(days["train"])
    with pytest.raises(ValueError, match="form: 6000 asked, but there are 5114"):
        tasks.dates({"form": 6000})


@pytest.mark.parametrize("name", tasks.UNSEEN)
def test_words_are_exchanged_for_words_that_no_corpus_has(name):
    corpus = load_village() if name == "names" else drawn(name)
    words, pairs = tasks.UNSEEN[name], corpus["test"]
    vocab, _ = corpus.shared_vocabs(tasks.LEFT_OUT[name])
    kept = [word in vocab for word in words]
    assert sum(kept) == len(kept) / 2 and not any(w in vocab for w in words.values())
    changed = tasks.exchange(pairs, words)
    old = [pair for pair in pairs if words.keys() & {*pair.source}]
    assert all(a.alignment == b.alignment for a, b in zip(changed, old, strict=True))
    back = {new: word for word, new in words.items()}
    assert tasks.exchange(changed, back) == old != changed
