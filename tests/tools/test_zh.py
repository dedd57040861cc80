"""The Chinese edition: nothing missing, fuzzy or damaged; what is built is the same."""

import re
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import polib
import pytest
import torch
import zh
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.site import source
from utils import exercises
from utils.attention import masked_softmax
from utils.exercises import result

LANG = "{http://www.w3.org/XML/1998/namespace}lang"
FILES = [*sorted(zh.CHINESE.rglob("*.po")), zh.MESSAGES]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the Chinese edition."""
    folder = tmp_path_factory.mktemp("zh")
    zh.build(folder, zh.ENGLISH)
    return folder


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_finished_notebook_is_whole_and_an_unfinished_one_undamaged(path):
    """If a change of the English fails here, CONTRIBUTING.md says what to do."""
    _, notebook, po = zh.opened(path)
    found = list(zh.faults(notebook, po))
    if po.metadata["X-Finished"] == "no":
        found = [fault for fault in found if fault[1] == "damaged"]
    assert found == []


def test_what_is_built_has_the_code_the_outputs_and_the_ids_of_the_english(built):
    for path in built.rglob("*.ipynb"):
        own = nbformat.read(path, as_version=4)
        english = nbformat.read(zh.ENGLISH / path.relative_to(built), as_version=4)
        assert own.metadata == english.metadata
        for cell, old in zip(own.cells, english.cells, strict=True):
            if old.cell_type == "markdown":
                old.source = cell.source
        assert own.cells == english.cells


def test_a_picture_that_a_notebook_shows_is_drawn_with_chinese_words(built):
    text = "".join(path.read_text("utf-8") for path in built.glob("*.ipynb"))
    shown = set(re.findall(r"\]\(([^)]*img/[^)]*)\)", text))
    assert shown == {f"img/{path.name}" for path in built.glob("img/*")}
    for name in shown:
        own, english = (
            list(ElementTree.parse(folder / name).iter())  # noqa: S314  files of ours
            for folder in (built, zh.ENGLISH)
        )
        assert own[0].attrib.pop(LANG) == "zh-CN"
        drawn = [(part.tag, *part.attrib.items()) for part in own]
        assert sorted(drawn) == sorted((e.tag, *e.attrib.items()) for e in english)
        assert re.search(zh.HAN, "".join(own[0].itertext()))


def test_every_label_of_the_explorer_and_of_the_drawings_has_chinese():
    """A label is what `say` gets, and each text of two words in the scripts."""

    def texts(name, pattern):
        script = (zh.ROOT / "utils" / name).read_text("utf-8")
        return re.findall(pattern, re.sub(r'\\\n|"\s*\+\s*"', "", script))

    table = dict(texts("words.js", r'  "(.+)":\s+"(.+)",\n'))
    drawings = source.drawings().values()
    labels = {one[said] for one in drawings for said in ("axes", "measured")}
    labels |= source.SHIPPED.keys()
    for name in ("explorer.js", "draw.js"):
        labels |= {*texts(name, r'say\("([^"]+)"')}
        several = re.compile(r"[a-z},:] [a-z{]", re.IGNORECASE)
        labels |= {*filter(several.search, texts(name, r'"([^"\n]*)"'))}
    for path in zh.ENGLISH.glob("*.ipynb"):
        text = path.read_text("utf-8").replace(r"\"", '"')
        labels |= {*re.findall(r'^ *"Draw\(.+"(.+)"(?:, rows)?\)', text, re.M)}
    assert "Your heatmap" in labels
    assert labels <= table.keys()
    for english, chinese in table.items():
        places = re.findall(r"{\d}", english), re.findall(r"{\d}", chinese)
        assert sorted(places[0]) == sorted(places[1])


def test_exercises_say_what_the_file_has_but_for_what_is_fuzzy(tmp_path, monkeypatch):
    po = polib.pofile(zh.MESSAGES, wrapwidth=0)
    assert result.chinese() == {entry.msgid: entry.msgstr for entry in po}
    po[0].flags, po[0].previous_msgid = ["fuzzy"], 'It was "\\n".'
    po[1].msgstr = 'A "quoted" \\ word'
    (tmp_path / "exercises").mkdir()
    po.save(tmp_path / "exercises" / "zh.po")
    monkeypatch.setattr(result, "UTILS", tmp_path)
    found = result.chinese.__wrapped__()
    assert po[0].msgid not in found and found[po[1].msgid] == po[1].msgstr


@pytest.mark.parametrize(
    "answer",
    [
        ...,
        3,
        lambda: None,
        lambda X, valid_lens: [X],
        lambda X, valid_lens: X.numpy(),
        lambda X, valid_lens: X > 0,
        lambda X, valid_lens: X[..., None],
        lambda X, valid_lens: X + valid_lens[:, None],
        lambda X, valid_lens: X @ X,
        lambda X, valid_lens: torch.cat((X, X.mT)),
        lambda X, valid_lens: X.soft(),
        lambda X, valid_lens: 2 * masked_softmax(X, valid_lens),
        masked_softmax,
    ],
)
def test_whatever_is_said_has_chinese(answer, monkeypatch, capsys):
    asked = []

    class Words(dict):
        def get(self, sentence, _):
            asked.append(sentence)
            return self[sentence]

    words = Words(result.chinese())
    monkeypatch.setattr(result, "chinese", lambda: words)
    monkeypatch.setenv("LEARNING_TO_ALIGN_LANG", "zh")
    said = exercises.masked_softmax(answer)
    assert not said and said.cause in asked
    assert re.match("还没通过。|还没有做：", capsys.readouterr().out)


def test_notebooks_and_pages_are_built_and_link_to_what_is_in_chinese(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(zh, "ENGLISH", tmp_path)
    monkeypatch.setattr(zh, "CHINESE", tmp_path / "zh")
    (tmp_path / "zh").mkdir()
    text = "See [a](b.ipynb), [b](c.ipynb#d), ![p](img/p.svg), [x](https://x.y) [k](#k)"
    units = [text, "## See 1", "| See | `k` |", "| See 2 | $q$ |", "See 3"]
    page = "{}\n\n{}\n\n{}\n|---|---|\n{}\n\n{}\n".format(*units)
    (tmp_path / "P.md").write_text(page, encoding="utf-8")
    own = "见 [P](../P.md)、[Q](../Q.md)。\n"
    (tmp_path / "zh" / "1_own.md").write_text(own, encoding="utf-8")
    notebook = new_notebook(cells=[new_markdown_cell(text), new_code_cell("1")])
    for name in "abc":
        nbformat.write(notebook, tmp_path / f"{name}.ipynb")
    for name in "abcP":
        path = tmp_path / "zh" / f"{name}.po"
        po = zh.update(zh.opened(path)[1], polib.POFile())
        po.metadata["X-Finished"] = "no" if name == "c" else "yes"
        for entry in po:
            entry.msgstr = entry.msgid.replace("See", "参见")
        po.save(path)
    assert [entry.msgid for entry in po] == units
    zh.build(tmp_path / "out", tmp_path)
    built = {path.name: path for path in (tmp_path / "out").iterdir()}
    assert sorted(built) == ["1_own.md", "P.md", "a.ipynb", "b.ipynb"]
    for english, chinese in (("See", "参见"), ("(c", "(../c"), ("(img", "(../img")):
        text, page = text.replace(english, chinese), page.replace(english, chinese)
    assert nbformat.read(built["a.ipynb"], as_version=4).cells[0].source == text
    assert built["P.md"].read_text(encoding="utf-8") == page
    own = built["1_own.md"].read_text(encoding="utf-8")
    assert own == "见 [P](P.md)、[Q](../Q.md)。\n"


def test_a_change_of_the_english_fails_until_somebody_has_looked():
    """A number and a sentence changed, two cells exchanged, one new, one gone."""
    said = "The loss is 0.4. | A key and a query. | Read it twice. | It goes. | One."
    texts = said.split(" | ")
    old = new_notebook(cells=[new_markdown_cell(text) for text in texts])
    po = zh.update(old, polib.POFile())
    chinese = "损失是 0.4。", "键和查询。", "读两遍。", "去。", "一。"
    for entry, text in zip(po, chinese, strict=True):
        entry.msgstr = text
    assert list(zh.faults(old, po)) == []
    texts = texts[1], "The loss is 0.5.", "Read it three times.", "New", texts[4]
    new = new_notebook(cells=[new_markdown_cell(text) for text in texts])
    states = [state for _, state, _ in zh.faults(new, po)]
    assert states == ["missing"] * 3
    po = zh.update(new, po)
    assert [entry.msgid for entry in po] == [*texts]
    kept = [chinese[1], chinese[0], chinese[2], "", chinese[4]]
    assert [entry.msgstr for entry in po] == kept
    states = [state for _, state, _ in zh.faults(new, po)]
    assert states == ["fuzzy", "fuzzy", "missing"]
    assert zh.update(new, po) == po  # twice is once


ENGLISH = """- **The key** $h_j$ is `keys`, see [03](03.ipynb), {:g}.
| a | <em>b</em> |"""
CHINESE = """- **键** $h_j$ 即 `keys`，见 [03](03.ipynb)，{:g}。
| 甲 | <em>乙</em> |"""


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("$h_j$", "$h_i$", "formula"),
        ("`keys`", "`key`", "code"),
        ("(03.ipynb)", "(04.ipynb)", "link"),
        ("</em>", "", "tag"),
        ("**键**", "键", "sign of Markdown: lost ['**'"),
        ("- **", "**", "sign of Markdown: lost ['-'"),
        ("| 甲 |", "| 甲", "sign of Markdown: lost ['|'"),
        ("即 `", "即\n\n`", "blank line"),
        ("**键** ", "**键：**即 ", "doesn't open or close"),
        ("**键**", "看**“键”**", "doesn't open or close"),
        ("，见", "，\n见", "line break"),
        ("甲", "*甲*", "italics"),
        ("，见", ", 见", "half-width"),
        ("即 `", "即`", "no space"),
        ("，见", "， 见", "a space at"),
        ("{:g}", "{}", "field"),
    ],
)
def test_damage_is_named(right, wrong, said):
    assert list(zh.damage(ENGLISH, CHINESE)) == []
    assert CHINESE.count(right) == 1
    (found, *_) = zh.damage(ENGLISH, CHINESE.replace(right, wrong))
    assert said in found


OWN = zh.CHINESE / "08_to_13.md"
FIGURE = re.compile(r"\d+(?:[.,]\d+)*")


def test_the_page_written_in_chinese_keeps_to_the_rules():
    blocks = zh.BLOCK.findall(OWN.read_text(encoding="utf-8"))
    assert [fault for block in blocks for fault in zh.damage(block, block)] == []


def test_the_verdicts_have_the_figures_of_the_english_notebooks():
    """Of the cell with its verdict; if one fails, the page is to be written anew."""
    text = OWN.read_text(encoding="utf-8")
    parts = re.findall(r"^## \[.+?\]\((\S+)\)\n(.+?)(?=^## |\Z)", text, re.M | re.S)
    assert [Path(link).name[:2] for link, _ in parts] == "08 09 10 11 12 13".split()
    for link, said in parts:
        cells = nbformat.read(zh.CHINESE / link, as_version=4).cells
        verdict = re.compile("(?s)(?=.*<details>).*(verdict|short version)")
        known = "".join(cell.source for cell in cells if verdict.match(cell.source))
        figures = set(FIGURE.findall(re.sub("笔记本 05", "", said)))
        assert len(figures) > 5
        assert figures - set(FIGURE.findall(known)) == set(), link
