"""Write sheets to print to build/worksheets: `make worksheets`.

Everything on them comes from elsewhere: the toy's numbers, steps and questions from the
notebooks, the quiz from INSTRUCTOR.md, without its answers. Each sheet is a page for a
browser; where there is Chromium, also a PDF.
"""

import ast
import base64
import contextlib
import io
import os
import re
from pathlib import Path

import matplotlib.pyplot as plt
import mistune
import nbformat
import torch
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import math_to_image

from tools.chromium import chromium, page
from utils.plotting import font_families, plot_curves, show_heatmap

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "worksheets"
CHINESE = re.compile(r"[\u4e00-\u9fff]+")
FORMULA = re.compile(r"\$([^$\n]+)\$")
POINTS = 11

FRAME = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<style>
@page {{ size: A4; margin: 16mm }}
body {{ font: {points}pt/1.5 system-ui, sans-serif; width: 178mm; margin: 2em auto }}
h1 {{ font-size: 1.4em }}
h2 {{ font-size: 1.1em; break-after: avoid }}
header {{ display: flex; justify-content: space-between; align-items: baseline }}
.question {{ break-inside: avoid; margin-bottom: 1.2em }}
.lines {{ height: 4.5em; print-color-adjust: exact; -webkit-print-color-adjust: exact;
    background: repeating-linear-gradient(transparent 0 1.45em, #bbb 1.45em 1.5em) }}
table {{ border-collapse: collapse; width: 100%; table-layout: fixed }}
th, td {{ border: 1px solid #555; padding: .4em; text-align: center }}
td {{ height: 3.4em }}
figure {{ margin: 1em 0; break-inside: avoid }}
figure svg {{ max-width: 100%; height: auto; max-height: 100mm }}
@media print {{ body {{ margin: 0 }} }}
</style>
<header><h1>{title}</h1> Name: ______________________</header>
{body}
"""


def cells(number):
    """{id: source} of a notebook's cells."""
    (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    return {c.id: c.source for c in nbformat.read(path, as_version=4).cells}


def formula(match):
    """A formula as a picture on the line, with its text for those who don't see it."""
    file = io.BytesIO()
    font = FontProperties(size=POINTS, math_fontfamily="cm")
    depth = math_to_image(f"${match[1]}$", file, prop=font, dpi=72, format="svg")
    return picture(file, match[1], depth)


def chinese(match):
    """Chinese words as a picture, since not every system has a font for them."""
    file, figure = io.BytesIO(), plt.figure(figsize=(0.1, 0.1))
    figure.text(0, 0, match[0], fontsize=POINTS, fontfamily=font_families())
    figure.savefig(file, format="svg", bbox_inches="tight", pad_inches=0)
    plt.close(figure)
    return picture(file, match[0], 0.1 * POINTS)


def picture(file, words, depth):
    data = base64.b64encode(file.getvalue()).decode()
    return (
        f'<img alt="{words}" style="vertical-align: {-depth:.1f}pt" '
        f'src="data:image/svg+xml;base64,{data}">'
    )


def html(text):
    return mistune.html(FORMULA.sub(formula, CHINESE.sub(chinese, text)))


def paragraph(text, start):
    """The paragraph of a text cell that begins with these words."""
    (found,) = re.findall(rf"^{re.escape(start)}.*?(?=\n\n|\Z)", text, re.M | re.S)
    return found


def drawing(ax, alternative):
    file = io.StringIO()
    ax.figure.savefig(file, format="svg")
    plt.close(ax.figure)
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :].replace(
        "<svg", f'<svg role="img" aria-label="{alternative}"', 1
    )
    return f"<figure>{svg}</figure>"


def toy():
    """Notebook 02's five steps, with its numbers, in a table to fill in."""
    source, names = cells("02"), {"torch": torch}
    for cell in ("109b53ea", "4959530a"):
        exec(source[cell], names)  # noqa: S102
    words, keys = names["words"], names["toy_keys"].tolist()

    steps = [
        paragraph(source["2dd968d5"], "**Step 1"),
        paragraph(source["20f433b1"], "**Step 2"),
        paragraph(source["5a291e59"], "**Step 3"),
        paragraph(source["5b5df553"], "**Predict.** Step 4"),
        paragraph(source["b72c82cc"], "**Step 5").replace("$c_i$:", "$c_i$."),
    ]
    heads = ["word", "state", "1: sums", "2: tanh", "3: score", "4: weight", "5: part"]
    rows = [
        f"<tr><th>{word}<th>{key}" + "<td>" * (len(heads) - 2)
        for word, key in zip(words, keys, strict=True)
    ]
    table = "<table><tr>" + "".join(f"<th>{head}" for head in heads) + "".join(rows)
    total = f'<tr><th colspan="{len(heads) - 1}">context: the sum of the parts<td>'
    given = [paragraph(source["d4c13c31"], "The decoder has written")] + [
        f"{symbol} = {names[name].tolist()}"
        for symbol, name in (
            ("query $s_{i-1}$", "toy_query"),
            ("$W_a$", "W_a"),
            ("$U_a$", "U_a"),
            ("$v_a$", "v_a"),
        )
    ]
    texts = html("\n\n".join(given)), html("\n\n".join(steps))
    return texts[0] + table + total + "</table>" + texts[1]


def heatmap():
    """Notebook 00's first translation before anyone has looked; and an empty grid."""
    names, before = {}, Path.cwd()
    source = cells("00")
    os.chdir(ROOT / "notebooks")
    try:
        with contextlib.redirect_stdout(None):  # what the cells print isn't needed
            exec(source["9061c6f9"], names)  # noqa: S102
            exec(source["2aa9a5b9"], names)  # noqa: S102
    finally:
        os.chdir(before)
    found = names["translation"]
    given = [list(found.source_tokens), list(found.tokens)]
    empty = [["          "] * 9] * 2
    pictures = []
    for columns, rows in (given, empty):
        zeros = torch.zeros(len(rows), len(columns))
        ax = show_heatmap(zeros, columns, rows, colorbar=False, eos=None)
        ax.set_xticks([x - 0.5 for x in range(1, len(columns))], minor=True)
        ax.set_yticks([y - 0.5 for y in range(1, len(rows))], minor=True)
        ax.grid(which="minor", color="#999999")
        pictures.append(drawing(ax, "An empty heatmap"))
    ask = """Shade each square: dark where you expect the model to look. A row is a
word that it writes, a column a word that it reads. What do the numbers of a row add up
to?"""
    own = html("A sentence of your own, with its translation:") + pictures[1]
    return html(ask) + pictures[0] + f'<div class="question">{own}</div>'


def curve():
    """Notebook 01's axes, and what it asks to be drawn."""
    source = cells("01")
    ask = paragraph(source["c24fbbc6"], "**Predict.**")
    (buckets,) = (
        ast.literal_eval(node.value)
        for node in ast.parse(source["f22ffb01"]).body
        if isinstance(node, ast.Assign) and node.targets[0].id == "BUCKETS"
    )
    labels = [f"{low}–{high}" for low, high in buckets]
    nothing = [0.0] * len(labels)
    ax = plot_curves(labels, {"mine": nothing}, "source words", "BLEU", ylim=(0, 100))
    ax.get_legend().remove()
    ax.lines[0].set_visible(False)
    return html(ask) + drawing(ax, "Axes: BLEU from 0 to 100 over the source's length")


def questions():
    """(number, text, notebook) of each question of the quiz, without its answer."""
    page = (ROOT / "notebooks" / "INSTRUCTOR.md").read_text(encoding="utf-8")
    text = page.partition("\n## Quiz\n")[2].partition("\n## ")[0]
    text = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    asked = re.split(r"^\*\*(\d+)\.\*\*", text, flags=re.MULTILINE)[1:]
    for number, question in zip(asked[::2], asked[1::2], strict=True):
        words, notebook = re.fullmatch(
            r"(.*)\*\(Notebooks? (.*?)\)\*", question.strip(), re.DOTALL
        ).groups()
        yield number, words.strip(), notebook


def quiz():
    parts, before = [], None
    for number, words, notebook in questions():
        if notebook != before:
            parts.append(f"<h2>Notebook {notebook}</h2>")
            before = notebook
        asked = html(f"**{number}.** {words}")
        parts.append(f'<div class="question">{asked}<div class="lines"></div></div>')
    return "".join(parts)


SHEETS = {
    "toy": ("The toy by hand", toy),
    "heatmap": ("An empty heatmap", heatmap),
    "curve": ("Quality against length", curve),
    "quiz": ("Questions", quiz),
}


def main():
    plt.switch_backend("agg")
    plt.rcParams["svg.fonttype"] = "path"  # Chinese, wherever it is printed
    OUT.mkdir(parents=True, exist_ok=True)
    for name, (title, body) in SHEETS.items():
        text = FRAME.format(title=title, body=body(), points=POINTS)
        (OUT / f"{name}.html").write_text(text, encoding="utf-8")
    if chromium():
        with page() as sheet:
            for name in SHEETS:
                sheet.goto((OUT / f"{name}.html").as_uri())
                sheet.pdf(path=OUT / f"{name}.pdf", prefer_css_page_size=True)
    else:
        print("There is no Chromium here: print the pages from a browser.")
    print("\n".join(sorted(map(str, OUT.iterdir()))))


if __name__ == "__main__":
    main()
