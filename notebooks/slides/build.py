"""Slides from the notebooks: pages in build/slides that need no network.

    python notebooks/slides/build.py [notebooks/02_additive_scoring.ipynb ...]

A cell's metadata says what becomes of it: `{"slideshow": {"slide_type": ...}}`, which
JupyterLab sets under "Property Inspector", "Slide Type".

slide     begins a column of slides       fragment  same slide, after the next key
subslide  begins a slide below            -         same slide, at once
notes     only for the presenter          skip      left out, as are cells without any

Slides show less than a notebook says. Of a text cell, long paragraphs become notes. A
cell that drew a figure shows the figure, and its code becomes a note. What follows the
heading "Exercises" is left out.
"""

import base64
import importlib.util
import io
import re
import shutil
import sys
import tarfile
from pathlib import Path

import nbformat
import numpy as np
import pooch
from jinja2 import FileSystemLoader
from nbconvert import SlidesExporter
from PIL import Image
from traitlets.config import Config

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HERE.parent
OUT = NOTEBOOKS.parent / "build" / "slides"
CACHE = NOTEBOOKS.parent / "build" / "fetched"

REGISTRY = "https://registry.npmjs.org/"
FETCHED = {  # package: its checksum, and the files that the pages load
    "reveal.js/-/reveal.js-4.6.1.tgz": (
        "4f4121ef2b8e7e9398bdecd7b3b6ce5e0ee3a2f5af221708eb6c4ce03bcae6be",
        {"dist/reveal.js", "dist/reveal.css", "plugin/notes/notes.js", "LICENSE"},
    ),
    "mathjax/-/mathjax-3.2.2.tgz": (
        "1b9c0a1c44df864e915690558e72adb9cc5203360daefd385084ced3b6c64c09",
        {"es5/tex-svg-full.js", "LICENSE"},
    ),
}

LONG_PARAGRAPH = 40  # words; a longer one is read aloud, not shown
BESIDE_PICTURE = 25  # the same, where a picture or a long table needs the room
LONG_CODE = 20  # lines; more are set in smaller type
LONG_TABLE = 11  # lines; likewise
ZOOM = 0.75  # figures have two pixels for one of a page, and are shown on a wall
TALL = 1800  # pixels; a taller figure gets two slides
LINES = 24  # of code and of what it printed; a slide has no room for more
LINE_WIDTH = 95  # characters of a printed line
SHOWN = {"slide", "subslide", "fragment", "-"}


# --- what of a notebook is shown ---------------------------------------------------


def slide_type(cell):
    return cell.metadata.get("slideshow", {}).get("slide_type", "skip")


def blocks(text):
    """The blocks of a Markdown text: what blank lines part."""
    return [block for block in re.split(r"\n\s*\n", text.strip()) if block.strip()]


def longest_table(parts):
    """The lines of the longest table among blocks, without its first."""
    return max((part.count("\n") for part in parts if part[0] == "|"), default=0)


def is_shown(block, longest=LONG_PARAGRAPH):
    """Heading, list, table, formula, picture, bold beginning, or short paragraph."""
    marked = re.match(r"#|\$\$|!\[|\||[-*>] |\d+\. |\*\*", block.strip())
    return bool(marked) or len(block.split()) <= longest


def sections(source):
    """A text cell's parts, each with at most one heading; no exercises."""
    source = re.split(r"^## Exercises", source, flags=re.MULTILINE)[0]
    source = re.sub(r"\((\d\d_\w+)\.ipynb\)", r"(\1.html)", source)
    source = re.sub(r"\[([^]]+)\]\(\w+\.md\)", r"\1", source)  # not among the slides
    # A heading begins a section, and so does the paragraph before a second table.
    source = re.sub(r"(\n\|[^\n]*\n\n(?!## |\|))((?:[^\n]+\n)+\n\|)", r"\1\f\2", source)
    parts = re.split(r"\f|^(?=###? )", source, flags=re.MULTILINE)
    return [part for part in parts if part.strip()]


def shown_and_read(section):
    """What a slide shows of a section, and what becomes a note: one of them is all."""
    parts = blocks(section)
    crowded = "![" in section or longest_table(parts) > LONG_TABLE
    longest = BESIDE_PICTURE if crowded else LONG_PARAGRAPH
    shown = [block for block in parts if is_shown(block, longest)]
    if all(block.startswith("#") for block in shown):  # a heading alone says too little
        return section, ""
    return "\n\n".join(shown), "\n\n".join(b for b in parts if b not in shown)


def figures(cell):
    """The pictures that a cell drew, (height, width, 3) of 8 bits; and their texts."""
    found = []
    for output in cell.get("outputs", []):
        data = output.get("data", {}).get("image/png")
        if data:
            picture = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")
            text = output.metadata.get("image/png", {}).get("alt", "")
            found += [(half, text) for half in halves(np.asarray(picture))]
    return found


def halves(pixels):
    """A tall figure in two, cut near its middle where the least is drawn."""
    height = len(pixels)
    if height <= TALL:
        return [pixels]
    ink = (pixels < 255).any(axis=2).sum(axis=1)
    middle = slice(height * 2 // 5, height * 3 // 5)
    cut = middle.start + int(ink[middle].argmin())
    return [pixels[:cut], pixels[cut:]]


def embedded(pixels, text):
    """A picture for the page: its data, its words, and its size on the slide."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    height, width, _ = pixels.shape
    return {
        "data": base64.b64encode(file.getvalue()).decode(),
        "text": text,
        "width": round(ZOOM * width),
        "height": round(ZOOM * height),
    }


def printed(cell):
    """What a code cell printed or returned, as text; without bars of progress."""
    text = [output.text for output in cell.outputs if output.output_type == "stream"]
    if not any("image/png" in output.get("data", {}) for output in cell.outputs):
        text += [
            o.data["text/plain"]
            for o in cell.outputs
            if "text/plain" in o.get("data", {}) and len(o.data) == 1
        ]
    return "".join(text).rstrip()


def new_cell(source, kind, cell_id):
    return nbformat.v4.new_markdown_cell(
        source, id=cell_id, metadata={"slideshow": {"slide_type": kind}}
    )


def text_cells(cell, kind):
    """A text cell -> one cell a section, each followed by its note."""
    cells = []
    for n, section in enumerate(sections(cell.source)):
        shown, read = shown_and_read(section)
        if n:
            kind = "slide" if section.startswith("## ") else "subslide"
        cells.append(new_cell(shown, kind, f"{cell.id}-{n}"))
        cells[-1].metadata["dense"] = longest_table(blocks(shown)) > LONG_TABLE
        if read:
            cells.append(new_cell(read, "notes", f"{cell.id}-{n}-notes"))
    return cells


def code_cells(cell, kind):
    """A code cell with what its slide shows.

    Code becomes a note where it drew a figure, or has no room beside what it printed.
    """
    first, *more = figures(cell) or [None]
    text = printed(cell)
    lines = sum(1 + len(line) // LINE_WIDTH for line in text.splitlines())
    fits = not text or lines + len(cell.source.splitlines()) <= LINES
    shown = nbformat.v4.new_code_cell(cell.source, id=cell.id)
    shown.metadata["slideshow"] = {"slide_type": kind}
    shown.metadata["shown"] = {
        "code": first is None and fits,
        "long": cell.source.count("\n") >= LONG_CODE,
        "figure": None if first is None else embedded(*first),
        "text": text,
    }
    cells = [shown]
    if not shown.metadata["shown"]["code"]:
        code = f"```python\n{cell.source}\n```"
        cells.append(new_cell(code, "notes", f"{cell.id}-notes"))
    for n, picture in enumerate(more):
        cells.append(nbformat.v4.new_code_cell("", id=f"{cell.id}-{n}"))
        cells[-1].metadata["slideshow"] = {"slide_type": "subslide"}
        cells[-1].metadata["shown"] = {"figure": embedded(*picture)}
    return cells


def prepared(notebook):
    """The notebook with what the slides show, and nothing else."""
    cells = []
    for cell in notebook.cells:
        kind = slide_type(cell)
        if kind in SHOWN and cell.cell_type == "markdown":
            cells += text_cells(cell, kind)
        elif kind in SHOWN:
            cells += code_cells(cell, kind)
        elif kind == "notes":
            cells.append(new_cell(cell.source, kind, cell.id))
    return nbformat.v4.new_notebook(cells=cells)


# --- pages -------------------------------------------------------------------------


def title_of(notebook):
    return re.search(r"^# (.+)$", notebook.cells[0].source, re.MULTILINE)[1]


def page(notebook):
    """A notebook -> its slides, as one HTML page."""
    exporter = SlidesExporter(
        template_file="page.html.j2",
        extra_loaders=[FileSystemLoader(HERE)],
        config=Config({"CSSHTMLHeaderPreprocessor": {"style": "default"}}),
    )
    exporter.exclude_anchor_links = True
    resources = {"metadata": {"name": title_of(notebook)}}
    return exporter.from_notebook_node(prepared(notebook), resources)[0]


def fetch(out, cache=CACHE, registry=REGISTRY):
    """Put what the pages load into out: downloaded once to cache, and checked."""
    for package, (sha256, wanted) in FETCHED.items():
        name = package.split("/")[0]
        if all((out / name / file).exists() for file in wanted):
            continue
        try:
            archive = pooch.retrieve(
                registry + package,
                known_hash=f"sha256:{sha256}",
                fname=Path(package).name,
                path=cache,
            )
        except OSError as error:
            raise ConnectionError(
                f"could not download {registry}{package} ({error}). The slides need it "
                f"once. Without a network: put that file into {cache}"
            ) from error
        with tarfile.open(archive) as files:
            for file in wanted:
                target = out / name / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(files.extractfile(f"package/{file}").read())


def chinese_font():
    """The font file of the package mpl-font, which figures use too."""
    folder = Path(importlib.util.find_spec("mpl_font").origin).parent
    return folder / "fonts" / "noto" / "NotoSansCJKsc-Regular.otf"


def write(paths, out=OUT):
    """The slides of these notebooks into out, with all that they load."""
    out.mkdir(parents=True, exist_ok=True)
    fetch(out)
    if not (out / "chinese.otf").exists():
        shutil.copy(chinese_font(), out / "chinese.otf")
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        if prepared(notebook).cells:
            (out / f"{path.stem}.html").write_text(page(notebook), encoding="utf-8")
    shutil.copy(HERE / "slides.css", out)
    shutil.copytree(NOTEBOOKS / "img", out / "img", dirs_exist_ok=True)
    rows = []
    for path in sorted(out.glob("[0-9][0-9]_*.html")):
        title = re.search("<title>(.+)</title>", path.read_text(encoding="utf-8"))[1]
        rows.append(f'<li><a href="{path.name}">{title}</a></li>')
    index = (HERE / "index.html").read_text(encoding="utf-8")
    index = index.replace("<!-- lectures -->", "\n".join(rows))
    (out / "index.html").write_text(index, encoding="utf-8")


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]]
    write(given or sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")))
    print("Open build/slides/index.html in a browser.")
