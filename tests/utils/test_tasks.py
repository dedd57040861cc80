"""The three tasks: what they draw is right, split honestly, and measured rightly."""

import random
from datetime import date, datetime

import pytest

from utils import tasks
from utils.corpora import load_village
from utils.data import Pair
from utils.tasks import Event

SIZES = {"train": 400, "valid": 50, "test": 80, "new": 50}
DRAWN = {
    "stories": tasks.stories({**SIZES, "long": 60}),
    "headlines": tasks.headlines({**SIZES, "long": 60}),
    "dates": tasks.dates({**SIZES, "form": 60}),
}


def every_pair(corpus):
    return [pair for pairs in corpus.splits.values() for pair in pairs]


@pytest.mark.parametrize("name", DRAWN)
def test_what_all_tasks_share(name):
    """A seed draws the same again, no source twice; links and words are known."""
    corpus = DRAWN[name]
    drawn = every_pair(corpus)
    assert len({pair.source for pair in drawn}) == len(drawn)
    sizes = {split: len(pairs) for split, pairs in corpus.splits.items()}
    assert getattr(tasks, name)(sizes).splits == corpus.splits
    assert getattr(tasks, name)(sizes, seed=1).splits != corpus.splits
    src_vocab, tgt_vocab = corpus.vocabs()  # of the training split
    village, _ = load_village("en", "fr").vocabs()
    for pair in drawn:
        assert all(j < len(pair.source) for j, _ in pair.alignment)
        linked = {i for _, i in pair.alignment}
        marks = {i for i, word in enumerate(pair.target) if word in ("-", ",")}
        assert linked == set(range(len(pair.target))) - marks
        assert all(word in src_vocab for word in pair.source)
        assert all(word in tgt_vocab for word in pair.target)
        if name != "dates":
            words = {*pair.source, *pair.target}
            more = {"where", "walked", "washes", "cleans"}  # Village has few such forms
            assert {word for word in words if word not in village} <= more


# --- stories ---------------------------------------------------------------------

STORY = [
    Event("baker", "went", "market"),
    Event("nurse", "took", "key"),
    Event("baker", "walked", "garden"),
    Event("nurse", "came", "school"),
    Event("nurse", "sent", "key", "baker"),
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
    nobody_moves = [Event("nurse", "took", "key")]
    assert tasks.last_fact("thing", "key", nobody_moves) is None


def test_a_question_is_asked_with_its_answer_linked():
    pair = tasks.ask("holder", "key", STORY)
    end = "the nurse sent the key to the baker . who has the key ?"
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
            holder[words[4]] = words[-1] if verb == "sent" else who
    kind, name = question[0], question[-1]
    if kind == "who":
        return holder[name]
    return where[holder.get(name, name)]


def test_every_answer_follows_from_the_story_and_tests_hold_what_they_promise():
    for split, pairs in DRAWN["stories"].splits.items():
        for pair in pairs:
            assert pair.target == (read_story(pair),)
            ((j, _),) = pair.alignment
            assert pair.source[j] == pair.target[0]
            text = " ".join(pair.source)
            held_out = any(
                f"the {who} {verb} to the {place} ." in text
                for who, place in tasks.NEVER_THERE.items()
                for verb in tasks.GOES
            )
            assert held_out == (split == "new")
        counts = {pair.source.count(".") for pair in pairs}
        if split == "train":
            assert counts == {2, 3, 4, 5}
        if split == "long":
            assert counts <= set(range(6, 11)) and len(counts) > 2


def test_things_are_sent_by_whoever_has_them():
    for seed in range(20):
        holder = {}
        for event in tasks.draw_events(10, random.Random(seed)):
            if event.verb == "took":
                assert event.what not in holder
                holder[event.what] = event.who
            if event.verb == "sent":
                assert holder[event.what] == event.who != event.to
                holder[event.what] = event.to


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


def test_ordinals():
    days = (1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 30, 31)
    found = [tasks.date_parts(date(1999, 1, n))["nth"] for n in days]
    expected = "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 23rd 30th 31st"
    assert found == expected.split()


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


# --- joined sentences -------------------------------------------------------------


def test_joined_pairs():
    links, tags = frozenset({(0, 0)}), frozenset({"tag"})
    pairs = [
        Pair((f"s{n}", "."), (f"t{n}", "u", "."), links, tags, links) for n in range(4)
    ]
    joined = tasks.join_pairs(pairs)
    for pair in joined:
        first, comma, word, second, stop = pair.source
        assert (comma, word, stop) == (",", "but", ".") and first != second
        mirrored = (first.replace("s", "t"), "u", ",", "mais")
        assert pair.target == (*mirrored, second.replace("s", "t"), "u", ".")
        assert pair[2:] == (None, tags, frozenset())  # no link of a part is left
    for place in (0, 3):  # everyone is first once, and second once
        assert sorted(p.source[place] for p in joined) == ["s0", "s1", "s2", "s3"]
    assert tasks.join_pairs(pairs) == joined != tasks.join_pairs(pairs, seed=1)
    with pytest.raises(ValueError, match="two or more"):
        tasks.join_pairs(pairs[:1])
    with pytest.raises(ValueError, match="another last word would be lost"):
        tasks.join_pairs([*pairs, pairs[0]._replace(source=("a", "?"))])
