"""Write the Chinese edition: `make zh`, to build/zh. It isn't committed.

    python tools/zh.py                  write the finished notebooks
    python tools/zh.py update [PO ...]  bring PO files up to date with the English, and
                                        say what is damaged, and how much is to be done

notebooks/zh/NAME.po has the Chinese of the notebook, page or picture NAME. A unit is a
block of Markdown between blank lines, if it holds words. In a page, a row of a table is
one, too; in a picture, a text element. Code cells, outputs, metadata and ids are
copied, so a notebook lies where its code finds `../data`. Links lead to the Chinese
file where there is one. A file is finished when its head says `X-Finished: yes`: only
then is it built, and must nothing be missing or fuzzy. A page of notebooks/zh whose
name begins with a number is written in Chinese, and is copied. utils/exercises/zh.po
has the sentences that the exercises of 00 to 07 may say.
"""

import ast
import difflib
import os
import re
import sys
from collections import Counter
from pathlib import Path

import nbformat
import polib
from nbformat.v4 import new_markdown_cell

ROOT = Path(__file__).resolve().parent.parent
ENGLISH = ROOT / "notebooks"
CHINESE = ENGLISH / "zh"
MESSAGES = ROOT / "utils" / "exercises" / "zh.po"

BLOCK = re.compile(r"(?s)(?=\S)((?:```.*?```|\$\$.*?\$\$|(?!\n\s*(?:\n|\Z)).)+)")
# where a row of a table, or a text of a picture, begins or ends
PARTS = re.compile(r"(?m)^(?=\|)|(?<=\|\n)|(</?(?:title|desc|text)\b[^>]*>)")
# what an exercise says is of two words at least; a pattern has a backslash
SAID = re.compile(r"(?!not attempted)[^\\]*[\w}.,:?] +[\w{(<][^\\]*$")
LINK = re.compile(r"(?<=\]\()(?![a-z]+:)[^)\s#]+")  # to a file
MUST = {  # what the Chinese keeps, as often as the English has it
    "formula": r"\$\$.+?\$\$|\$[^$]+\$",
    "code": r"```.*?```|`[^`]+`|<code>.*?</code>",
    # a heading has its own link in Chinese; one to a page in Chinese only may be added
    "link": r"\]\((?:#|(?!\d\w+\.md)[^)\s]+\))",
    "tag": r"<[/!\w][^>]*>",
    "sign of Markdown": r"(?m)^(?:#+|-|\d+\.)(?= )|\*\*|(?<!\\)\|",
    "field": r"\{[:.\w]*\}",
    "blank line": r"\n\s*\n",
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


def units(notebook):
    """(id of the cell, block) for each block that holds words, not only code."""
    wordless = "|".join(MUST[kind] for kind in ("formula", "code", "link", "tag"))
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for block in BLOCK.findall(cell.source):
                rest = re.sub(wordless, " ", block, flags=re.DOTALL)
                if re.search("[A-Za-z]{2}", rest):
                    yield cell.id, block


def messages():
    """(who says it, sentence) for all that the exercises of 00 to 07 may say."""
    from utils import exercises  # with PyTorch, which takes seconds
    from utils.exercises.engine import ERRORS, rows_of

    for module in exercises.OF_NOTEBOOKS[:8]:
        for one in vars(vars(exercises)[module]).values():
            if isinstance(one, exercises.Exercise):
                pairs = *one.stages.items(), *one.edits()
                yield from ((one.name, said) for said, _ in pairs)
        tree = ast.parse(MESSAGES.with_name(f"{module}.py").read_text("utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        faults = [call for call in calls if ast.unparse(call.func) == "Fault"]
        yield from ((module, call.args[0].value) for call in faults)
    yield from (("engine", said) for said, _ in rows_of(ERRORS))
    for module in ("result", "engine", "put_together"):
        tree = ast.parse(MESSAGES.with_name(f"{module}.py").read_text("utf-8"))
        other = ast.Expr | ast.JoinedStr  # docstrings and f-strings
        nodes = [node for node in ast.walk(tree) if not isinstance(node, other)]
        parts = [part for node in nodes for part in ast.iter_child_nodes(node)]
        texts = [part.value for part in parts if isinstance(part, ast.Constant)]
        yield from ((module, said) for said in texts if SAID.match(str(said)))


def update(notebook, old):
    """A PO file of this notebook that keeps what is translated in the old one.

    A changed unit gets the Chinese of the one that it is most like, as fuzzy. A unit
    that is gone is left out.
    """
    head = {"Language": "zh_CN", "Content-Type": "text/plain; charset=UTF-8"}
    new, blocks = polib.POFile(wrapwidth=0), {}
    new.metadata = old.metadata or head | {"X-Finished": "no"}
    for place, block in units(notebook):
        blocks.setdefault(block, []).append((place, ""))
    gone = {e.msgid: e.msgstr for e in old if e.msgstr and e.msgid not in blocks}
    for block, places in blocks.items():
        entry = old.find(block) or polib.POEntry(msgid=block)
        entry.occurrences = places
        near = difflib.get_close_matches(block, gone, 1, 0.5)
        if near and not entry.msgstr:
            entry.msgstr, entry.flags = gone[near[0]], ["fuzzy"]
            entry.previous_msgid = near[0]
        new.append(entry)
    return new


def damage(english, chinese):
    """What a translation lost, or shows otherwise than it is meant, as sentences."""
    for name, pattern in MUST.items():
        kept = re.compile(pattern, re.DOTALL)
        old, new = Counter(kept.findall(english)), Counter(kept.findall(chinese))
        if old != new:
            yield f"{name}: lost {[*(old - new)]}, added {[*(new - old)]}"
    for before, bold, after in BOLD.findall(chinese):
        if before and re.match(r"\W", bold) or after and re.search(r"\W$", bold):
            yield f"bold doesn't open or close without a space outside: **{bold}**"
    signs = rf"{MUST['formula']}|{MUST['code']}|{SHAPE}"
    seen = re.sub(signs, "x", chinese, flags=re.DOTALL)
    plain = SIGNS.sub("", seen)
    for fault, pattern in SEEN.items():
        text = plain if "Latin" in fault or "half" in fault else seen
        for found in re.finditer(pattern, text):
            yield f"{fault}: …{text[max(found.start() - 6, 0) : found.end() + 6]}…"


def faults(notebook, po):
    """(id of the cell, what is wrong: missing, fuzzy or damaged; more of it)."""
    for place, block in units(notebook):
        entry = po.find(block) or polib.POEntry()
        if entry.translated():
            yield from ((place, "damaged", d) for d in damage(block, entry.msgstr))
        else:
            yield place, "fuzzy" if entry.fuzzy else "missing", f"{block[:60]!r}"


def opened(path):
    """A PO file, there or not yet -> (name of its English, as a notebook, the PO file).

    Each message, row of a page's table, and text of a picture is a cell of a notebook.
    """
    po = polib.pofile(path, wrapwidth=0) if path.exists() else polib.POFile()
    if path == MESSAGES:
        name, parts = "messages", messages()
    else:
        own = ENGLISH / path.relative_to(CHINESE)
        files = map(own.with_suffix, (".ipynb", ".md", ".svg"))
        if not (english := next(filter(Path.exists, files), None)):
            sys.exit(f"{path} is named after no file in {own.parent}.")
        name, text = english.relative_to(ENGLISH), english.read_text("utf-8")
        if name.suffix == ".ipynb":
            return name, nbformat.reads(text, as_version=4), po
        parts = [(name.stem, part) for part in PARTS.split(text) if part]
    cells = [new_markdown_cell(part, id=place) for place, part in parts]
    return name, nbformat.NotebookNode(cells=cells), po


def build(folder, english, without=None):
    """Write the finished notebooks, pages and pictures into a folder.

    english: the folder of the English ones, to which links lead that have no Chinese.
    without: a folder of the Chinese that is left out.
    """
    files = {
        name: (notebook, po)
        for name, notebook, po in map(opened, CHINESE.rglob("*.po"))
        if po.metadata.get("X-Finished") == "yes" and name.parts[0] != without
    }
    for path in CHINESE.glob("[0-9]*.md"):
        cell = new_markdown_cell(path.read_text("utf-8").replace("](../", "]("))
        files[Path(path.name)] = nbformat.NotebookNode(cells=[cell]), []
    for name, (notebook, po) in files.items():
        here = folder / name
        known = {entry.msgid: entry.msgstr for entry in po if entry.translated()}

        def link(found, name=name, here=here):
            target = Path(os.path.normpath(name.parent / found[0]))
            place = (folder if target in files else english) / target
            return Path(os.path.relpath(place, here.parent)).as_posix()

        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                parts = (known.get(part, part) for part in BLOCK.split(cell.source))
                cell.source = LINK.sub(link, "".join(parts))
        here.parent.mkdir(parents=True, exist_ok=True)
        if name.suffix == ".ipynb":
            nbformat.write(notebook, here)
        else:
            text = "".join(cell.source for cell in notebook.cells)
            text = text.replace("<svg", '<svg xml:lang="zh-CN"')
            here.write_text(text, encoding="utf-8", newline="\n")


def main(command="build", *paths):
    if command == "build":
        build(ROOT / "build" / "zh", ENGLISH)
        if not (data := ROOT / "build" / "data").exists():
            data.symlink_to("../data")  # what a notebook finds as `../data`
        return
    assert command == "update", "build, or update [FILES OF notebooks/zh]"
    for path in map(Path, paths or [*sorted(CHINESE.rglob("*.po")), MESSAGES]):
        name, notebook, po = opened(path.resolve())
        po = update(notebook, po)
        po.save(path)
        count = Counter()
        for place, state, said in faults(notebook, po):
            count[state] += 1
            if state != "missing":
                print(f"{place}: {state}: {said}")
        print(f"{name}: {count['missing']} missing, {count['fuzzy']} fuzzy")


if __name__ == "__main__":
    main(*sys.argv[1:])
