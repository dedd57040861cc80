"""Corpora: the Village, Multi30k, files of one's own, how they are split."""

import gzip
import hashlib
import re
import shutil
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils import corpora
from utils.corpora import load_parallel, load_tsv, load_village, split_pairs
from utils.data import Pair
from utils.files import DATA_VARIABLE


def test_the_villages_files_are_checked_and_read_in_either_direction(
    tmp_path, monkeypatch
):
    folder = shutil.copytree(corpora.VILLAGE_FOLDER, tmp_path / "village")
    shutil.copy(corpora.VILLAGE_FOLDER.parent / "SHA256SUMS", tmp_path)
    monkeypatch.setattr(corpora, "VILLAGE_FOLDER", folder)
    changed, text = folder / "train.tsv.gz", "en\tfr\ten-fr\ttags\nA x\tB y\t{}\ta,b"
    changed.write_bytes(gzip.compress(text.format("0-2").encode()))
    with pytest.raises(ValueError, match="train.tsv.gz has .*data/village/generate.py"):
        load_village("en", "fr")
    (tmp_path / "SHA256SUMS").unlink()
    with pytest.raises(ValueError, match="train.tsv.gz, line 2: a link of .* outside"):
        load_village("en", "fr")
    changed.write_bytes(gzip.compress(text.format("0-1 1?0").encode()))
    (pair,) = load_village("fr", "en")["train"]
    links = frozenset({(1, 0)}), {"a", "b"}, frozenset({(0, 1)})
    assert pair == Pair(("B", "y"), ("A", "x"), *links)


@pytest.fixture
def tsv(tmp_path):
    """Loads a text, | for tabs and / for line ends, all as the training split."""

    def load(text, **options):
        data = text if isinstance(text, bytes) else text.encode()
        path = tmp_path / "own.tsv"
        path.write_bytes(data.translate(bytes.maketrans(b"|/", b"\t\n")))
        return load_tsv(path, **{"held_out": 0, **options})

    return load


READ = [  # a text, its columns, its pairs, what is said of it
    ("Go.|Va !|CC/Hi.|Salut\u00a0!|CC", "1 2", "Go.|Va !/Hi.|Salut\u00a0!", ""),
    (" «E\u0301\u200c» |e @ X\x0b ", "2 1", "e @ X\x0b | «E\u0301\u200c» ", ""),
    ("1|A.|4|B./2|C.|5|D.|CC", "2 4", "A.|B./C.|D.", "1 line unlike .* 4 .*line 2"),
    ("id|en|of it|fr/1|A.|4|B.", "fr en", "B.|A.", ""),
    ("1|one/2|two", "1 2", "1|one/2|two", "source, .* in numbers"),  # a task
    ("A.|B./A.|B./a.|B./A.|B.", "1 2", "A.|B./a.|B.", "2 lines left out: .*s 2, 4"),
    ("French|English_text/A.|B.", "1 2", "A.|B.", "line 1 left out: .* and English_"),
    ("French|Hello/A.|B.", "1 2", "French|Hello/A.|B.", ""),
    ("I speak French|Sentence", "1 2", "I speak French|Sentence", ""),
    ('"A ""b"""|C./D.|E.', "1 2", 'A "b"|C./D.|E.', "1 line with quotation.*line 1"),
    ('"A" "b"|C./"D."|E.', "1 2", '"A" "b"|C./"D."|E.', ""),
    ('PK "b"|C./"D.|E.', "1 2", 'PK "b"|C./"D.|E.', ""),  # nor a zip
]


@pytest.mark.parametrize("text, columns, pairs, said", READ)
def test_how_a_text_is_read_and_what_is_said(tsv, text, columns, pairs, said):
    corpus = tsv(text, columns=columns.split())
    assert "/".join("|".join(pair[:2]) for pair in corpus["train"]) == pairs
    assert len(corpus.findings) == bool(said)
    assert re.search(said, "".join(corpus.findings))


def test_a_tenth_is_held_out_as_near_as_it_can_be(tsv):
    for count, repeats, held_out in ((3, 1, 1), (12_000, 1, 1000), (30, 7, 21)):
        lines = [f"a{n}|b{n}{' ' * k}/" for k in range(repeats) for n in range(count)]
        corpus = tsv("".join(lines), held_out=None)
        assert len(corpus["valid"]) == len(corpus["test"]) == held_out


BAD_LINES = {  # a text of three lines, one of them bad: its number, what is said of it
    "A.|B./C./D.|E.": (2, "too few columns, 1 instead of at least 2; expected two"),
    "A.|B./ |/C.|D.": (2, "the en side is empty"),
    "A.|B./C.|D./E.|": (3, "the fr side is empty; both need a sentence"),
    "\u200b \u2060|A./B.|C./D.|E.": (1, "the en side is empty"),
    b"A.|B./caf\xe9|C./E.|F.": (2, "not UTF-8 .byte 0xe9."),
}


@pytest.mark.parametrize("text", BAD_LINES)
def test_bad_lines_are_named_or_skipped_and_reported(tsv, text):
    number, match = BAD_LINES[text]
    advice = "; --skip-bad-lines leaves such lines out$"
    with pytest.raises(ValueError, match=f"own.tsv, line {number}: {match}.*{advice}"):
        tsv(text)
    corpus = tsv(text, skip_bad_lines=True)
    assert repr(corpus).endswith("train 2, valid 0, test 0")
    reason = re.match("[^;.]*[^;. ]", match)[0]
    assert re.match(rf"1 line left out: {reason} \(line {number}\)", *corpus.findings)
    with pytest.raises(ValueError, match="no pair is left; 1 line left out: .*line 1"):
        tsv("A.", skip_bad_lines=True)


THREE = "Go.|Va !|CC/Hi.|Salut !|CC/Run!|Cours !|CC"
REFUSED = [
    (THREE, {"columns": (1, 1)}, "--columns must be two numbers from 1, .* got 1 1"),
    (THREE, {"columns": (0, "Go.")}, "--columns must be two numbers from 1"),
    (THREE, {"columns": ("Go.", "fr")}, "two names in the first line of .*Go., Va !"),
    ("en|fr|fr/A.|B.|C.", {"columns": ("en", "fr")}, "two names in the first line"),
    (THREE, {"columns": (1, 4)}, "1 and 4, .* nothing. .*Columns 1, 2, 3 have text"),
    ("1|A.|7|B./2|C.|8|D./3|E.", {}, "1 and 2, .* numbers, .*Columns 2, 4 have text"),
    ("en|fr/A.|B./C.|D.", {"columns": ("en", 3)}, "1 and 3, .*Columns 1, 2 have text"),
    (THREE, {"target": "en"}, "source and target are both en .English."),
    (THREE, {"held_out": 1.0}, "held_out must be a whole number of at least 0, got 1"),
    (THREE, {"held_out": 2}, "3 pairs in 3 groups .*too few.* --held-out"),
    (THREE, {"quotes": True}, "quotes must be one of"),
    ("A;B/C;D/E;F", {}, "most lines have no tab"),
]


@pytest.mark.parametrize("text, options, message", REFUSED)
def test_what_is_refused(tsv, text, options, message):
    with pytest.raises(ValueError, match=message):
        tsv(text, **options)
    with pytest.raises(ValueError, match="direction en→it: choose two of en, fr, zh$"):
        load_village("en", "it")


@pytest.fixture
def parallel(tmp_path):
    """Loads two texts for each split, from a plain file and from one with gzip."""

    def load(skip_bad_lines=False, held_out=None, **texts):
        paths = {split: (tmp_path / split, tmp_path / f"{split}.gz") for split in texts}
        for split, sides in texts.items():
            source, target = (side.replace("/", "\n").encode() for side in sides)
            paths[split][0].write_bytes(source)
            paths[split][1].write_bytes(gzip.compress(target))
        return load_parallel(**paths, held_out=held_out, skip_bad_lines=skip_bad_lines)

    return load


def test_parallel_files_are_read_and_share_no_pair(parallel):
    train = "A./B./C./B./D./", "E./F./G./F./H."
    corpus = parallel(train=train, test=("B./B./I.", "F./F./J."))
    assert repr(corpus) == "train, train.gz en→fr: train 2, valid 1, test 3"
    assert corpus.target_texts("test") == ["F.", "F.", "J."]
    rest = {pair[:2] for split in ("train", "valid") for pair in corpus[split]}
    assert rest == {("A.", "E."), ("C.", "G."), ("D.", "H.")}
    said = "train: 2 lines left out: a pair that test has (lines 2, 4)"
    assert corpus.findings == [said]
    both = {"test": ("B.", "F."), "valid": ("B./C./C.", "F./G./G.")}
    corpus = parallel(train=("A./B./C./D./A.", "E./F./G./H./E."), **both)
    kept = [[pair[0] for pair in corpus[split]] for split in ("train", "valid", "test")]
    assert kept == [["A.", "D."], ["C.", "C."], ["B."]]
    with pytest.raises(ValueError, match="no pair is left for train; train: 5 lines"):
        parallel(train=train, test=train, valid=("A.", "B."))
    with pytest.raises(ValueError, match="no pair is left for valid; valid: 1 line"):
        parallel(train=train, **dict.fromkeys(("test", "valid"), ("B.", "F.")))
    with pytest.raises(ValueError, match="held_out cuts splits .* both others are"):
        parallel(train=train, **both, held_out=1)


def test_parallel_files_that_are_refused(parallel):
    with pytest.raises(ValueError, match="train.gz have 2 and 1 lines: each line"):
        parallel(train=("A./B.", "C."))
    texts = {"train": ("A./B./C.", "D./E./F."), "valid": ("A.//B.", "C./D./E.")}
    with pytest.raises(ValueError, match="valid.gz, line 2: the en side is empty"):
        parallel(**texts)
    said = "valid: 1 line left out: the en side is empty (line 2)"
    assert parallel(skip_bad_lines=True, **texts).findings[0] == said
    with pytest.raises(ValueError, match="train must be two files, got 'a.en'"):
        load_parallel("a.en")


NUMBERS = st.integers(0, 12)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1), st.integers(0, 4), NUMBERS)
def test_splits_share_no_sentence_and_lose_no_pair(numbers, size, seed):
    pairs = [Pair(f"s{a}", f"t{b}") for a, b in numbers]
    try:
        splits = split_pairs(pairs, size=size, seed=seed)
    except ValueError as error:
        assert "are too few for splits valid and test of" in str(error)
        return
    assert len(splits["valid"]) == len(splits["test"]) == size
    assert Counter(sum(splits.values(), [])) == Counter(pairs)
    for a, b in combinations(splits.values(), 2):
        for side in (0, 1):
            assert not {pair[side] for pair in a} & {pair[side] for pair in b}
    for own in splits.values():  # the order of the file
        rest = iter(pairs)
        assert all(any(pair is p for p in rest) for pair in own)


def test_a_split_is_drawn_by_its_seed():
    pairs = [Pair(f"{i:02}", str(-i)) for i in range(100)]
    found = {tuple(split_pairs(pairs, seed=seed)["test"]) for seed in range(9)}
    assert len(found) == 9


def test_multi30k_is_the_users_own_or_downloaded(tmp_path, monkeypatch):
    """Here all are the user's own but one."""
    folder, sums = tmp_path / "multi30k", {}
    folder.mkdir()
    for name in corpora.MULTI30K_SHA256:
        (folder / name).write_bytes(gzip.compress(name.encode()))
        sums[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    missing = (folder / "val.fr.gz").rename(tmp_path / "val.fr.gz")

    def download(url, sha256, path):
        assert url == corpora.MULTI30K_URL + missing.name
        assert sha256 == sums[missing.name]
        return missing

    monkeypatch.setattr(corpora, "MULTI30K_SHA256", sums)
    monkeypatch.setattr("utils.files.download", download)
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    corpus = corpora.load_multi30k("en", "fr")
    assert corpus["valid"] == [Pair("val.en.gz", "val.fr.gz", line=1)]
    changed = folder / "val.en.gz"
    changed.write_bytes(b"changed")
    with pytest.raises(ValueError, match="val.en.gz has .* left as it is"):
        corpora.load_multi30k("de", "en")
    assert changed.read_bytes() == b"changed"
