"""Write what Sphinx reads: the course's pages, changed only as a site needs it.

    python -m tools.site.source

build/site-source has the notebooks and Markdown files where the repository has them,
and the pages of tools/site. build/site-extra has what is copied to the site as it is:
figures, and the notebooks, to download. Nothing is run.
"""

import ast
import base64
import html
import io
import json
import os
import re
import shutil
from functools import cache
from pathlib import Path

import nbformat
import numpy as np
import torch
from matplotlib.axes import Axes
from PIL import Image, ImageOps

from tools import zh
from tools.site import heatmap_page
from utils.checkpoint import load_checkpoint
from utils.corpora import load_village
from utils.decoding import translate
from utils.explorer import SHIPPED, drawing, settings
from utils.figures import COLOUR_BAR, alternative_text
from utils.text import tokenize

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCE, EXTRA = ROOT / "build" / "site-source", ROOT / "build" / "site-extra"
HTML_BLOCK = re.compile(r"^<(?:.+\n?)+", re.MULTILINE)
FORMULA = re.compile(r"\$([^$\n]+)\$")
LINK = re.compile(r"(?<=\]\()[^)\s#:]+(?=(?:#[^)\s]*)?\))")
PICTURE = re.compile(r"!\[([^\]]+)\]\([^)]+\)")
# a panel's beginning, by utils.figures: its kind, its title, what it shows
DRAWN = re.compile(r"(Heatmap|Curves|Bars)(?:: (.+?))?\. (.+?)[:.](?= )")
ROWS = re.compile(r"(\d+) rows \(target\), (\d+) columns.*")
LOOKS = r"which of \2 source words each of \1 target words looks at"
ANSWERED = re.compile(r"^(\| \d\d\.\d \|.+?\|).+\|$", re.MULTILINE)
README = (ROOT / "README.md").read_text(encoding="utf-8")
OWNER = re.search(r"mybinder\.org/v2/gh/([\w.-]+)/", README)[1]
BINDER = "https://mybinder.org/v2/gh"
HOME = [  # sentences for the explorer of the home page
    "She does not have a blue boat.",
    "This blue door is old.",
    "The young man who Eva knows is tired.",
    "The old hat is not blue.",
    "The fish eats the cat.",
    "I love to eat apples.",
    "The girl sings in the garden.",
]
FORGE = f"github.com/{OWNER}/learning-to-align"
NOT_YET = "Not attempted yet"  # what a check says on an exercise as it is given
TAUGHT = "# mirror:"  # the first words of a cell that shows a class of utils
ASIDE = re.compile(  # imports, checks, drawing, reading of data, answers
    r"(?m:^(from|import) )|\A(assert .*\s*)+\Z|exercises\.|show_|plot|plt\.|load_|json"
    r"|Explorer|= \.\.\."
)
LETTERS = 140  # of text, for each line of code that a page shows unfolded
WIDE = 48  # letters of a line of code on a phone


# --- text -------------------------------------------------------------------------


def site_text(text, place, pages):
    """Markdown as the site needs it; place: its path in the repository.

    pages: the paths that the site has. A link to another file of the repository leads
    to the forge. Formulas within blocks of HTML, which Sphinx leaves alone, are marked.
    """

    def link(found):
        target = Path(os.path.normpath((ROOT / place).parent / found[0]))
        inside = Path(os.path.relpath(target, ROOT)).as_posix()
        if not target.exists() or inside in pages or "img/" in inside:
            return found[0]
        return f"https://{FORGE}/{'tree' if target.is_dir() else 'blob'}/HEAD/{inside}"

    def one_sentence(found):
        words = " ".join(found[1].split())
        first = re.match(r".+?(?:\.(?= [A-Z])|。)|.+", words)[0]
        picture = found[0].replace(found[1], first)
        return picture + (f"\n\n{folded(words)}\n" if first != words else "")

    def mark(found):
        return FORMULA.sub(
            lambda f: rf'<span class="math">\({html.escape(f[1])}\)</span>', found[0]
        )

    return HTML_BLOCK.sub(mark, PICTURE.sub(one_sentence, LINK.sub(link, text)))


def folded(words):
    """What a picture's alternative text leaves out, to unfold below it."""
    summary = "<summary>The picture in words</summary>"
    return f'<details class="words">{summary}{html.escape(words)}</details>'


def seen(text):
    """What a figure shows, in one sentence: its text without the numbers.

    text: by `utils.figures.alternative_text`.
    """
    lead, *panels = re.split(r"(?=Heatmap|Curves|Bars)", text)
    said = []
    for panel in panels:
        kind, title, what = DRAWN.match(panel).groups()
        lines = re.findall(r"[.\d] ([^.:]+): (?:first|highest|lowest)", panel)
        what = ROWS.sub(LOOKS, what).replace(", against", " against")
        about = [title, what != "Sizes" and what, lines and f"for {', '.join(lines)}"]
        said.append(f"{kind}: {', '.join(filter(None, about))}")
    lead = re.sub(r"[. ]*(Panel 1 of \d+)?[. ]*$", "", lead)
    return "; ".join(filter(None, [lead, *said])) + "."


# --- notebooks ---------------------------------------------------------------------


def unfolded(cells):
    """The ids of the cells whose code is read at once; all other code is folded.

    First come the classes that are taught, in the order of the text, then the toys: the
    shortest cells that neither import, draw nor check. What doesn't fit is folded.
    """
    code = [cell for cell in cells if cell.cell_type == "code"]
    taught = [cell for cell in code if cell.source.startswith(TAUGHT)]
    toys = [c for c in code if c not in taught and not ASIDE.search(c.source)]
    toys.sort(key=lambda cell: len(cell.source))
    text = "".join(cell.source for cell in cells if cell.cell_type == "markdown")
    wide = len(re.findall(zh.HAN, text))  # as wide as two letters
    room, found = (len(text) + wide) // LETTERS, set()
    for cell in taught + toys:
        lines = sum(len(line) // WIDE + 1 for line in cell.source.split("\n"))
        if lines <= room:
            room -= lines
            found.add(cell.id)
    return found


def site_notebook(notebook, place, pages):
    """The notebook with tags that myst-nb reads, and its figures {name: picture}."""
    figures = {}
    notebook.metadata.pop("widgets", None)
    first, *rest = [cell for cell in notebook.cells if cell.id != "colab"]
    notebook.cells = [first, nbformat.v4.new_markdown_cell(ways(place)), *rest]
    read = unfolded(rest)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = site_text(cell.source, place, pages)
            continue
        hidden = cell.metadata.get("jupyter", {}).get("outputs_hidden")
        cell.metadata["tags"] = ["hide-output"] if hidden else []
        if cell.id not in read:
            cell.metadata["tags"] += ["hide-input"]
        cell.outputs = [o for o in cell.outputs if NOT_YET not in o.get("text", "")]
        for number, output in enumerate(cell.outputs):
            data = output.get("data", {})
            text = data.get("text/plain", "")
            said = text.startswith("Explorer(") and ast.literal_eval(text[8:])
            if cell.id in drawings():
                data["text/html"] = drawn_by_hand(cell.id, up="../")
            elif said and set(said[0]) <= SHIPPED.keys():
                data["text/html"] = explorer(*said, up="../")
            elif "image/png" in data:
                name = f"{Path(place).stem}-{cell.id}-{number}.png"
                figures[name] = base64.b64decode(data["image/png"])
                known, path = output.metadata["image/png"], "../notebooks/figures"
                data["text/html"] = figure(f"{path}/{name}", figures[name], **known)
    return notebook, figures


def explorer(models, sentences, up=""):
    """The HTML of an explorer, begun when it is seen; up: the way to the site's root.

    The true links of sentences of the Village are framed.
    """
    wanted = {tuple(tokenize(sentence, "en")) for sentence in sentences}
    pairs = [pair for pair in village_pairs() if pair.source in wanted]
    told = in_script(settings(models, sentences, pairs))
    files = {name: f"{up}_static/{SHIPPED[name]}" for name in models}
    return f"""<div class="explorer"><p>The explorer needs JavaScript.</p></div>
<link rel="modulepreload" href="{up}_static/translator.js">
<script type="module">
import {{ mount }} from "./{up}_static/explorer.js";
const files = {json.dumps(files)};
async function load(name) {{
  const answer = await fetch(files[name]);
  if (!answer.ok) throw new Error(answer.statusText);
  return answer.arrayBuffer();
}}
const here = document.querySelector("div.explorer:not(.draw)");
new IntersectionObserver(([seen], watch) => {{
  if (!seen.isIntersecting) return;
  watch.disconnect();
  mount(here, {told}, load);
}}).observe(here);
</script>
"""


def in_script(values):
    """Plain values as a script in a page may hold them."""
    return json.dumps(values, ensure_ascii=False).replace("<", "\\u003c")


def drawn_by_hand(name, up=""):
    """The HTML of a drawing of `drawings`; up: the way to the site's root."""
    return f"""<div class="draw" id="{name}"><p>A drawing needs JavaScript.</p></div>
<script type="module">
import {{ mount }} from "./{up}_static/draw.js";
mount(document.getElementById("{name}"), {in_script(drawings()[name])});
</script>
"""


@cache
def drawings():
    """{id of a notebook's cell: what its drawing is told}, with measured answers."""
    stored = json.loads((ROOT / "data/results/bottleneck.json").read_text("utf-8"))
    runs = [r["bleu_by_length"] for r in stored["runs"] if r["num_hiddens"] == 128]
    labels = [f"{low}–{high}" for low, high in stored["settings"]["buckets"]]
    measured = f"measured, mean of {len(runs)} models"
    keys = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    scores = torch.tanh(torch.tensor([0.0, 1.0]) + keys) @ torch.tensor([-2.0, -2.0])
    model, *vocabs = load_checkpoint(ROOT / "data/models" / SHIPPED["Chinese"])[:3]
    eva = translate(model, "The young man who Eva knows is tired.", *vocabs)
    english = "Eva, knows, (links), that, (counts), young, man, very, tired".split(", ")
    rows = [" ".join(both) for both in zip(eva.tokens[:9], english, strict=True)]
    looks, columns = eva.attention_weights[:9, :8], eva.source_tokens[:8]
    words, shares = ["I", "love", "you"], scores.softmax(0)
    bleu = np.mean(runs, axis=0), "BLEU, by source words", (), measured
    return {
        "draw-bleu": drawing("curve", labels, *bleu),
        "draw-share": drawing("shares", words, shares, "Weight of each word"),
        "draw-eva": drawing("heatmap", columns, looks, "Heatmap", rows),
    }


@cache
def village_pairs():
    corpora = [load_village("en", language) for language in ("fr", "zh")]
    return [pair for c in corpora for split in c.splits.values() for pair in split]


def panels(white, scale):
    """The widths of a figure's panels that stand side by side, for a phone.

    white: whether all is white from top to bottom, for each pixel from left to right.
    Cut is there, but no nearer to an edge than 250 pixels of the page. scale: how many
    pixels one of the page has. The widths are in those of the page.
    """
    edges = np.flatnonzero(np.diff(white, prepend=False, append=False)).reshape(-1, 2)
    middles = [
        (end - start, (start + end) // 2)
        for start, end in edges
        if end - start >= 10 * scale and min(start, len(white) - end) >= 250 * scale
    ]
    if not middles:
        return [len(white) / scale]
    cut = max(middles)[1]
    return panels(white[:cut], scale) + panels(white[cut:], scale)


def figure(path, picture, width, alt, **_):
    """A drawn figure with its text, in a box that scrolls; on a phone, its panels.

    A panel is a window on the whole picture.
    """
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    scale = image.width / width
    words = re.sub(r"[${}\\\\_]", "", alt.replace(r"\alpha", "α"))

    def shown(part, style):
        return (
            f'<img src="{path}" alt="{html.escape(part + seen(words))}" {style} '
            f'width="{width}" height="{image.height / scale:.0f}" loading="lazy">'
        )

    widths = panels((np.asarray(image) > 250).all(axis=(0, 2)), scale)
    images, left = [shown("", f'class="whole" style="--width: {width}px"')], 0
    for k, own in enumerate(widths if len(widths) > 1 else [], start=1):
        style = f"width: {width / own:.2%}; margin-left: {-left / own:.2%}"
        part = shown(f"Part {k} of {len(widths)}: ", f'style="{style}"')
        images.append(f'<div class="part" style="--width: {own:.0f}px">{part}</div>')
        left += own
    cut = " cut" if len(images) > 1 else ""
    return (
        f'<div class="figure{cut}" tabindex="0" role="region" aria-label="Figure">'
        f"{''.join(images)}</div>{folded(words)}"
    )


def ways(place):
    """The line below a notebook's title: where it can be opened and run."""
    forge, run, download = FORGE, "Run it: ", "download the notebook"
    if place.startswith("zh/"):  # only the learners' repository has it
        forge, run, download = f"{FORGE}-learner", "运行：", "下载笔记本"
    binder = f"{forge.replace('github.com', BINDER)}/HEAD?labpath={place}"
    colab = forge.replace("github.com", "https://colab.research.google.com/github")
    return (
        f'<p class="ways">{run}<a href="{binder}">Binder</a> · '
        f'<a href="{colab}/blob/HEAD/{place}">Colab</a> · '
        f'<a href="{Path(place).name}" download>{download}</a></p>'
    )


def drawn(name, fig):
    """A picture of a page of this site, saved, as HTML; small enough for a phone."""
    text = alternative_text(fig)
    for bar in [ax for ax in fig.axes if ax.get_label() == COLOUR_BAR]:
        bar.remove()
    file = io.BytesIO()
    fig.savefig(file, dpi=200, facecolor="white", bbox_inches="tight")
    picture, path = file.getvalue(), f"figures/{name}.png"
    (EXTRA / path).write_bytes(picture)
    return figure(path, picture, round(Image.open(file).width / 2.25), text)


# --- all of it ---------------------------------------------------------------------


def read_texts():
    """{path: text} of the pages in Markdown; the Chinese lie in SOURCE."""
    paths = [ROOT / "README.md", ROOT / "data/README.md"]
    paths += [ROOT / "tools/benchmarks/README.md", *ROOT.glob("notebooks/*.md")]
    texts = {path.relative_to(ROOT).as_posix(): path for path in paths}
    texts |= {f"zh/{path.name}": path for path in SOURCE.glob("zh/*.md")}
    texts = {place: path.read_text(encoding="utf-8") for place, path in texts.items()}
    quiz = "notebooks/INSTRUCTOR.md"
    texts[quiz] = ANSWERED.sub(r"\1 |", texts[quiz])
    # the home page has the course's name
    text = re.sub(r"^# .*\n\n.*中文.*", "# Starting, and your own text", README)
    text = re.sub(r"https://.+\.github\.io/[\w-]+/(\w+)\.html", r"\1.md", text)
    return {**texts, "README.md": text}


def main():
    for folder in (SOURCE, EXTRA):
        shutil.rmtree(folder, ignore_errors=True)
    for folder in ("figures", "notebooks/figures", "zh"):
        (EXTRA / folder).mkdir(parents=True)
    zh.build(SOURCE / "zh", SOURCE / "notebooks", without="solutions")
    shutil.copytree(ROOT / "notebooks/img", SOURCE / "notebooks/img")
    notebooks = {f"zh/{path.name}": path for path in SOURCE.glob("zh/*.ipynb")}
    notebooks |= {f"notebooks/{p.name}": p for p in ROOT.glob("notebooks/*.ipynb")}
    texts = read_texts()
    pages = {*notebooks, *texts}
    written = {place: site_text(text, place, pages) for place, text in texts.items()}
    for place, path in notebooks.items():
        shutil.copy(path, EXTRA / place)
        notebook = nbformat.read(path, as_version=4)
        notebook, figures = site_notebook(notebook, place, pages)
        written[place] = nbformat.writes(notebook)
        for name, picture in figures.items():
            (EXTRA / "notebooks/figures" / name).write_bytes(picture)
    written["explorer.html"] = explorer(SHIPPED, HOME)
    written |= {f"{name}.html": drawn_by_hand(name) for name in drawings()}
    for path in (HERE / "pages").iterdir():
        written[path.name] = path.read_text(encoding="utf-8").replace("OWNER", OWNER)
    found = heatmap_page.page()
    for name, value in found.items():
        if isinstance(value, Axes):
            found[name] = drawn(name, value.figure)
    shared = Image.open(EXTRA / "figures/gold.png")
    ImageOps.pad(shared, (1200, 630), color="white").save(EXTRA / "social.png")
    question = "is_the_heatmap_right.md"
    written[question] = written[question].format(**found)
    for place, text in written.items():
        path = SOURCE / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    # a server shows it at any address: it needs no other file
    shutil.move(SOURCE / "404.html", EXTRA)


if __name__ == "__main__":
    main()
