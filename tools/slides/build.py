"""The lectures as slides: pages in build/slides that need no network, and PDFs.

    python -m tools.slides.build [notebooks/lectures/1_one_vector.ipynb ...]

A lecture is a notebook. Each cell has a slide type in its metadata, which JupyterLab
sets under "Property Inspector", "Slide Type": `slide` begins a slide, `-` goes on with
it, `notes` is for the presenter alone, `skip` is left out. A slide shows what a code
cell gave out. It shows the code, too, where the notebook does: where it isn't folded.
An explorer lives, and goes from row to row; the PDF has its picture.
"""

import ast
import base64
import json
import re
import shutil
import sys
from importlib.resources import files
from pathlib import Path

import nbformat
import pooch
from jinja2 import FileSystemLoader
from nbconvert import SlidesExporter
from traitlets.config import Config

from tools import chromium
from utils.explorer import SCRIPTS, SHIPPED, program, settings

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LECTURES = ROOT / "notebooks" / "lectures"
OUT = ROOT / "build" / "slides"

REGISTRY = "https://registry.npmjs.org/"
FETCHED = {  # package: its checksum, and the files that the pages load
    "reveal.js/-/reveal.js-4.6.1.tgz": (
        "4f4121ef2b8e7e9398bdecd7b3b6ce5e0ee3a2f5af221708eb6c4ce03bcae6be",
        ["dist/reveal.js", "dist/reveal.css", "plugin/notes/notes.js", "LICENSE"],
    ),
    "mathjax/-/mathjax-3.2.2.tgz": (
        "1b9c0a1c44df864e915690558e72adb9cc5203360daefd385084ced3b6c64c09",
        ["es5/tex-svg-full.js", "LICENSE"],
    ),
}


def title_of(notebook):
    text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    return re.search(r"^# (.+)$", text, re.MULTILINE)[1]


def page(notebook):
    """A lecture -> its slides, as one HTML page."""
    exporter = SlidesExporter(
        template_file="page.html.j2",
        extra_loaders=[FileSystemLoader(HERE)],
        config=Config({"CSSHTMLHeaderPreprocessor": {"style": "default"}}),
    )
    exporter.exclude_anchor_links = True
    for output in (o for cell in notebook.cells for o in cell.get("outputs", [])):
        text = output.get("data", {}).get("text/plain", "")
        if text.startswith("Explorer("):
            output.data["text/html"] = explorer(*ast.literal_eval(text[8:]))
    name = {"metadata": {"name": title_of(notebook)}}
    return exporter.from_notebook_node(notebook, name)[0]


def explorer(models, sentences):
    """The HTML of an explorer with all that it needs: a file can't load another one.

    Keys that it gets are its own, but for those with which a presenter turns pages.
    """
    told = settings(models, sentences, row_by_row=True)
    paths = {name: ROOT / "data" / "models" / SHIPPED[name] for name in models}
    files = {n: base64.b64encode(p.read_bytes()).decode() for n, p in paths.items()}
    return f"""<div class="explorer"></div>
<script type="module">
{program(*SCRIPTS)}
const files = {json.dumps(files)}, here = document.querySelector("div.explorer");
here.addEventListener("keydown", (event) => {{
  if (!event.key.startsWith("Page")) event.stopPropagation();
}});
mount(here, {json.dumps(told)}, async (name) =>
  Uint8Array.from(atob(files[name]), (c) => c.charCodeAt(0)).buffer);
</script>"""


def fetch(out):
    """Put what the pages load into out: downloaded once, checked, and unpacked.

    Raises OSError where a package can't be had. It may also be put into build/fetched.
    """
    for package, (sha256, wanted) in FETCHED.items():
        members = [f"package/{name}" for name in wanted]
        folder = out.resolve() / package.split("/")[0]
        pooch.retrieve(
            REGISTRY + package,
            known_hash=f"sha256:{sha256}",
            fname=Path(package).name,
            path=ROOT / "build" / "fetched",
            processor=pooch.Untar(members=members, extract_dir=folder),
        )


def write(paths, out=OUT):
    """The slides of these lectures into out, with all that they load."""
    out.mkdir(parents=True, exist_ok=True)
    fetch(out)
    fonts = files("mpl_font") / "fonts" / "noto"  # which figures use, too
    shutil.copy(fonts / "NotoSansCJKsc-Regular.otf", out / "chinese.otf")
    shutil.copy(HERE / "slides.css", out)
    shutil.copy(ROOT / "utils" / "explorer.css", out)
    shutil.copytree(LECTURES / "img", out / "img", dirs_exist_ok=True)
    rows = []
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        (out / f"{path.stem}.html").write_text(page(notebook), encoding="utf-8")
        rows.append(
            f'<li><a href="{path.stem}.html">{title_of(notebook)}</a> '
            f'(<a href="{path.stem}.pdf">PDF</a>)</li>'
        )
    index = (HERE / "index.html").read_text(encoding="utf-8")
    index = index.replace("<!-- lectures -->", "\n".join(rows))
    (out / "index.html").write_text(index, encoding="utf-8")


def print_pdfs(tab, paths, out=OUT):
    """The same slides as PDF files, a slide a page; tab: a page of a browser."""
    tab.set_default_timeout(0)  # a slow machine may take its time
    for path in paths:
        tab.goto((out / f"{path.stem}.html").as_uri() + "?print-pdf")
        tab.wait_for_function("document.querySelector('.pdf-page')")
        tab.evaluate("MathJax.startup.promise")
        tab.evaluate("document.fonts.ready")
        target = out / f"{path.stem}.pdf"
        tab.pdf(path=target, prefer_css_page_size=True, print_background=True)


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]]
    given = given or sorted(LECTURES.glob("*.ipynb"))
    write(given)
    print("Open build/slides/index.html in a browser.")
    if chromium.chromium():
        with chromium.started() as browser:
            print_pdfs(browser.new_page(), given)
    else:
        print("No PDF was written: it needs Chromium.")
