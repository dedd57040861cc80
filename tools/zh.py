"""Write the Chinese edition: `make zh`, to build/zh. It isn't committed.

    python tools/zh.py                  write the finished notebooks
    python tools/zh.py update [PO ...]  bring PO files up to date with the English, and
                                        say what is damaged, and how much is to be done

notebooks/zh/NAME.po has the Chinese of notebooks/NAME.ipynb, or of the page NAME.md. A
unit is a block of Markdown between blank lines, if it holds words; in a page, a row of
a table is one, too. Code cells, outputs, metadata and ids are copied, so a notebook
lies where its code finds `../data`. img/NAME.po has the words of the picture
img/NAME.svg; there a unit is a text element. Links lead to the Chinese file where there
is one. A file is finished when its head says `X-Finished: yes`: only then is it built,
and must nothing be missing or fuzzy. A page of notebooks/zh whose name begins with a
number is written in Chinese, and is copied. utils/exercises/zh.po has the sentences
that the exercises of 00 to 07 may say.
"""

import ast
import difflib
import os
import re
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import nbformat
import polib
from nbformat.v4 import new_markdown_cell, new_notebook

ROOT = Path(__file__).resolve().parent.parent
ENGLISH = ROOT / "notebooks"
CHINESE = ENGLISH / "zh"
MESSAGES = ROOT / "utils" / "exercises" / "zh.po"

BLOCK = re.compile(r"(?=\S)(?:```.*?```|\$\$.*?\$\$|(?!\n\s*(?:\n|\Z)).)+", re.DOTALL)
DRAWN = re.compile(r"(<(title|desc|text)\b[^>]*>)(.*?)(?=</\2>)", re.DOTALL)  # words
# what an exercise says is of two words at least; a pattern has a backslash
SAID = re.compile(r"(?!not attempted)[^\\]*[\w}.,:?] +[\w{(<][^\\]*$")
LINK = re.compile(r"(?<=\]\()(?![a-z]+:)[^)\s#]+")  # to a file
ANCHOR = re.compile(r"(?<=\]\(#)[^)\s]+")  # to a heading of the same page
ROW = re.compile(r"(?m)^(?=\|)|(?<=\|\n)")  # where a row of a table begins or ends
MUST = {  # what the Chinese keeps, as often as the English has it
    "formula": r"\$\$.+?\$\$|\$[^$]+\$",
    "code": r"```.*?```|`[^`]+`|<code>.*?</code>",
    "link": r"\]\((?!\d\w+\.md)[^)\s]+\)",  # one to a page in Chinese only may be added
    "tag": r"<[/\w][^>]*>",
    "bold": r"\*\*",
    "beginning of a line": r"(?m)^(?:#+|-|\d+\.)(?= )",
    "cell of a table": r"(?<!\\)\|",
    "field": r"\{[:.\w]*\}",
}
SIGNS = re.compile(r"\]\([^)]*\)|<[/\w][^>]*>|!?\[|\*")  # what is not seen of Markdown
SHAPE = r"\([\w. +/·]+(?:, ?[\w. +/·]*)+\)|[A-Za-zσ]\([^)]*\)"  # (B, E + H), tanh(x)
HAN, FULL = r"[\u3400-\u9fff]", r"[\u3001-\u303f\uff01-\uff5e“”‘’…—]"
BOLD = re.compile(r"(\w?)\*\*(?=\S)(.+?)\*\*(?=(\w?))", re.DOTALL)
SEEN = {  # what is wrong with Chinese as it is seen
    "a line break within Chinese": rf"(?:{HAN}|{FULL})\n(?:{HAN}|{FULL})",
    "Chinese in italics, which it doesn't have": rf"(?<!\*)\*{HAN}",
    "half-width punctuation in Chinese": rf"{HAN} ?[.,;:?!()]|[,;:?!()] ?{HAN}",
    "no space between Chinese and Latin": rf"{HAN}[A-Za-z0-9]|[A-Za-z0-9%]{HAN}",
    "a space at full-width punctuation": rf"[^\s|-] (?!…){FULL}|(?![“‘…—]){FULL} {HAN}",
}


def blocks(text):
    """The blocks of a Markdown text that hold words; formulas and code are none."""
    for block in BLOCK.findall(text):
        rest = block
        for kind in ("formula", "code", "link", "tag"):
            rest = re.sub(MUST[kind], " ", rest, flags=re.DOTALL)
        if re.search("[A-Za-z]{2}", rest):
            yield block


def messages():
    """(who says it, sentence) for all that the exercises of 00 to 07 may say."""
    from utils import exercises  # with PyTorch, which takes seconds

    for module in exercises.OF_NOTEBOOKS[:8]:
        for one in vars(import_module(f"utils.exercises.{module}")).values():
            if isinstance(one, exercises.Exercise):
                yield from ((one.name, said) for said in one.stages)
                yield from ((one.name, said) for said, _ in one.edits())
    for module in ("result", "engine", "put_together"):
        tree = ast.parse(MESSAGES.with_name(f"{module}.py").read_text("utf-8"))
        other = ast.Expr | ast.JoinedStr  # docstrings and f-strings
        nodes = [node for node in ast.walk(tree) if not isinstance(node, other)]
        parts = [part for node in nodes for part in ast.iter_child_nodes(node)]
        texts = [part.value for part in parts if isinstance(part, ast.Constant)]
        yield from ((module, said) for said in texts if SAID.match(str(said)))


def units(document):
    """(where, block) for each unit of what `opened` gives, in their order."""
    if isinstance(document, list):
        return document
    if isinstance(document, str):
        texts = [(tag, text) for _, tag, text in DRAWN.findall(document)]
    else:
        cells = [cell for cell in document.cells if cell.cell_type == "markdown"]
        texts = [(cell.id, cell.source) for cell in cells]
    return [(place, block) for place, text in texts for block in blocks(text)]


def update(units, old):
    """A PO file of these units that keeps what is translated in the old one.

    A changed unit gets the Chinese of the one that it is most like, as fuzzy. A unit
    that is gone is left out.
    """
    new = polib.POFile(wrapwidth=0)
    new.metadata = old.metadata or {
        "Language": "zh_CN",
        "Content-Type": "text/plain; charset=UTF-8",
        "X-Finished": "no",
    }
    known, places = {entry.msgid: entry for entry in old}, {}
    for place, block in units:
        places.setdefault(block, []).append((place, ""))
    gone = [block for block in known if block not in places]
    for block, occurrences in places.items():
        near = difflib.get_close_matches(block, gone, 1, 0.5)
        entry = polib.POEntry(msgid=block, occurrences=occurrences)
        old = known.get(block) or (near and known[near[0]]) or entry
        entry.msgstr, entry.flags = old.msgstr, old.flags
        entry.previous_msgid = old.previous_msgid
        if old.msgstr and old.msgid != block:
            entry.flags, entry.previous_msgid = ["fuzzy"], old.msgid
        new.append(entry)
    return new


def damage(english, chinese):
    """What a translation lost, or shows otherwise than it is meant, as sentences."""
    for name, pattern in MUST.items():
        kept = re.compile(pattern, re.DOTALL)
        old, new = Counter(kept.findall(english)), Counter(kept.findall(chinese))
        if old != new:
            yield f"{name}: lost {[*(old - new)]}, added {[*(new - old)]}"
    if len(BLOCK.findall(chinese)) != 1:
        yield "a blank line makes two blocks of one"
    for before, bold, after in BOLD.findall(chinese):
        if after and re.match(r"\W", bold[-1]):
            yield f"bold doesn't close: a space is missing behind …{bold[-4:]}**"
        if before and re.match(r"\W", bold[0]):
            yield f"bold doesn't open: a space is missing before **{bold[:4]}…"
    signs = rf"{MUST['formula']}|{MUST['code']}|{SHAPE}"
    seen = re.sub(signs, "x", chinese, flags=re.DOTALL)
    plain = SIGNS.sub("", seen)
    for fault, pattern in SEEN.items():
        text = plain if "Latin" in fault or "half" in fault else seen
        for found in re.finditer(pattern, text):
            yield f"{fault}: …{text[max(found.start() - 6, 0) : found.end() + 6]}…"


def faults(units, po):
    """(id of the cell, what is wrong: missing, fuzzy or damaged; more of it)."""
    known = {entry.msgid: entry for entry in po}
    for place, block in units:
        entry = known.get(block)
        if entry and entry.translated():
            yield from ((place, "damaged", d) for d in damage(block, entry.msgstr))
        else:
            state = "fuzzy" if entry and entry.fuzzy else "missing"
            yield place, state, f"{block[:60]!r}"


def is_finished(po):
    return po.metadata.get("X-Finished") == "yes"


def page(text, name):
    """A Markdown page as a notebook; each row of a table has its own cell."""
    notebook = new_notebook()
    notebook.cells = [new_markdown_cell(part, id=name) for part in ROW.split(text)]
    return notebook


def opened(path):
    """A PO file, there or not yet -> (name, notebook or SVG or messages, the PO).

    A page is given as a notebook, too.
    """
    po = polib.pofile(path, wrapwidth=0) if path.exists() else polib.POFile()
    if path == MESSAGES:
        return "messages", [*messages()], po
    kind = ".svg" if path.parent.name == "img" else ".ipynb"
    name = path.relative_to(CHINESE).with_suffix(kind)
    if (own := ENGLISH / name.with_suffix(".md")).exists():
        return Path(own.name), page(own.read_text("utf-8"), own.stem), po
    if not (ENGLISH / name).exists():
        sys.exit(f"{path} is named after no file: there is no {ENGLISH / name}.")
    document = (ENGLISH / name).read_text("utf-8")
    if kind == ".ipynb":
        document = nbformat.reads(document, as_version=4)
    return name, document, po


def anchor(heading):
    """The anchor that a heading has on GitHub and on the site."""
    return re.sub(r"[^\w -]", "", heading.lstrip("# ").lower()).replace(" ", "-")


def build(folder, english, solutions=True):
    """Write the finished notebooks, pages and pictures into a folder.

    english: the folder of the English ones, to which links lead that have no Chinese.
    solutions: write those, too.
    """
    files = {
        name: (document, po)
        for name, document, po in map(opened, CHINESE.rglob("*.po"))
        if is_finished(po) and (solutions or "solutions" not in name.parts)
    }
    for path in CHINESE.glob("[0-9]*.md"):
        text = path.read_text("utf-8").replace("](../", "](")
        files[Path(path.name)] = page(text, path.stem), polib.POFile()
    for name, (document, po) in files.items():
        known = {entry.msgid: entry.msgstr for entry in po if entry.translated()}
        anchors = {anchor(a): anchor(b) for a, b in known.items() if a[0] == "#"}
        here = folder / name

        def chinese(text, known=known):
            return BLOCK.sub(lambda block: known.get(block[0], block[0]), text)

        def link(found, name=name, here=here):
            target = Path(os.path.normpath(name.parent / found[0]))
            if target in files:
                return found[0]
            return Path(os.path.relpath(english / target, here.parent)).as_posix()

        here.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(document, str):
            svg = DRAWN.sub(lambda text: text[1] + chinese(text[3]), document)
            here.write_text(svg.replace("<svg", '<svg xml:lang="zh-CN"'), "utf-8")
            continue
        for cell in document.cells:
            if cell.cell_type == "markdown":
                text = ANCHOR.sub(
                    lambda found, to=anchors: to.get(found[0], found[0]),
                    chinese(cell.source),
                )
                cell.source = LINK.sub(link, text)
        if name.suffix == ".md":
            text = "".join(cell.source for cell in document.cells)
            here.write_text(text, encoding="utf-8", newline="\n")
        else:
            nbformat.write(document, here)


def main(command="build", *paths):
    if command == "build":
        build(ROOT / "build" / "zh", ENGLISH)
        if not (data := ROOT / "build" / "data").exists():
            data.symlink_to("../data")  # what a notebook finds as `../data`
        return
    paths = paths or [*sorted(CHINESE.rglob("*.po")), MESSAGES]
    for path in map(Path.resolve, map(Path, paths)):
        name, document, po = opened(path)
        po = update(units(document), po)
        path.parent.mkdir(parents=True, exist_ok=True)
        po.save(path)
        count = Counter()
        for place, state, said in faults(units(document), po):
            count[state] += 1
            if state != "missing":
                print(f"{place}: {state}: {said}")
        print(f"{name}: {count['missing']} missing, {count['fuzzy']} fuzzy")


if __name__ == "__main__":
    main(*sys.argv[1:])
