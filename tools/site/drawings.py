"""HTML of the two pages that show a model at work without a kernel, from steps.json."""

import json
from html import escape

WIDTH, LEFT, COLUMN, SQUARE = 480, 20, 55, 18
BAR, MARKED = "#0072B2", "#B34700"
ENDS = (0xC2, 0x55, 0x00), (0x5D, 0x3A, 0x9B)  # -1 is orange, 1 is purple
SECONDS = 4  # for each stage
STAGES = [
    ("The query", "Before it writes word {i}, the decoder has the state {before}: {H} "
     "numbers, of which {N} are drawn, from −1 (orange) to 1 (purple)."),
    ("Scores", "The query is compared with the annotation of every source word. Each "
     "comparison gives one score."),
    ("Weights", "The softmax makes weights of the scores. They sum to "
     "1, and <em>{best}</em> gets {weight}."),
    ("Context", "The annotations are added, each times its weight. The sum is the "
     "context {context}: {D} numbers, nearly those of <em>{best}</em>."),
    ("Update", "The GRU reads the context and the word written last, <em>{last}</em>. "
     "Its state becomes {after}, which will be the next query."),
    ("Word", "The new state, the context and the last word give each word of the "
     "vocabulary a probability. The largest is that of <em>{word}</em>."),
]  # fmt: skip


# --- one step, as a drawing whose parts appear one after the other --------------------


def text(x, y, words, **more):
    extra = "".join(f' {name.rstrip("_")}="{value}"' for name, value in more.items())
    return f'<text x="{x:g}" y="{y:g}"{extra}>{escape(words)}</text>'


def rectangle(x, y, width, height, fill):
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{fill}"/>'
    )


def strip(x, y, numbers):
    """A row of squares, each in the colour of its number."""
    parts = []
    for k, value in enumerate(numbers):
        end = ENDS[value > 0]
        shade = [round(255 + (c - 255) * min(abs(value), 1)) for c in end]
        parts.append(
            rectangle(x + SQUARE * k, y, SQUARE - 1, SQUARE, f"rgb{(*shade,)}")
        )
    frame = f'<rect x="{x - 0.5}" y="{y - 0.5}" width="{SQUARE * len(numbers)}" '
    return "".join(parts).replace(", ", ",") + (
        f'{frame}height="{SQUARE + 1}" fill="none" stroke="#777"/>'
    )


def bars(y, height, values, best):
    """A bar for each source word, from 0 or the smallest value up, with its number."""
    low, high = min(0, *values), max(values)
    parts = []
    for j, value in enumerate(values):
        tall = height * (value - low) / (high - low)
        x = LEFT + COLUMN * j
        fill = MARKED if j == best else BAR
        parts.append(rectangle(x + 10, y + height - tall, COLUMN - 20, tall, fill))
        middle = {"text-anchor": "middle", "class": "small"}
        parts.append(
            text(x + COLUMN / 2, y + height - tall - 4, f"{value:.2f}", **middle)
        )
    return "".join(parts)


def one_step(steps):
    """The drawing with the text beside it; without motion all of it is shown."""
    one = steps["one"]
    sentence = steps["sentences"][one["sentence"]]
    i, source = one["step"], sentence["source"]
    step = sentence["steps"][i - 1]
    so_far = [each["word"] for each in sentence["steps"][: i - 1]]
    weights = step["weights"]
    best = weights.index(max(weights))
    centre = {"text-anchor": "middle"}
    words = "".join(
        text(LEFT + COLUMN * (j + 0.5), 262, word, **centre)
        for j, word in enumerate(source)
    )
    lines = "".join(
        f'<path d="M{LEFT + COLUMN * (j + 0.5):g} 270 L{LEFT + 6 * SQUARE} 300" '
        f'stroke="{MARKED if j == best else BAR}" stroke-width="{1 + 7 * w:.1f}"/>'
        for j, w in enumerate(weights)
        if w >= 0.005
    )
    beside = LEFT + 12 * SQUARE + 10
    choices = "".join(
        text(LEFT + 100, 442 + 22 * k, word, **{"text-anchor": "end"})
        + rectangle(LEFT + 108, 430 + 22 * k, 200 * p, 14, MARKED if k == 0 else BAR)
        + text(LEFT + 116 + 200 * p, 442 + 22 * k, f"{p:.2f}", class_="small")
        for k, (word, p) in enumerate(list(step["choices"].items())[:3])
    )
    asks = f"written so far: {' '.join(so_far)}; state s{below(i - 1)}, the query"
    reads = f"GRU reads c{below(i)} and “{so_far[-1]}”, with s{below(i - 1)}:"
    parts = [
        text(LEFT, 18, asks)
        + strip(LEFT, 26, one["query"]),
        text(LEFT, 70, "scores") + bars(86, 54, step["scores"], best),
        text(LEFT, 164, "weights") + bars(184, 54, weights, best),
        lines + strip(LEFT, 302, one["context"])
        + text(beside, 316, f"context c{below(i)}"),
        text(LEFT, 348, reads)
        + strip(LEFT, 356, one["after"])
        + text(beside, 370, f"state s{below(i)}"),
        text(LEFT, 408, "probability of the next word") + choices,
    ]  # fmt: skip
    groups = "".join(
        f'<g class="part p{k}">{part}</g>' for k, part in enumerate(parts, 1)
    )
    facts = {
        "i": i, "before": sub("s", i - 1), "after": sub("s", i), "context": sub("c", i),
        "H": one["sizes"][0], "D": one["sizes"][1], "N": len(one["query"]),
        "best": escape(source[best]), "weight": f"{max(weights):.2f}",
        "last": escape(so_far[-1]), "word": escape(step["word"]),
    }  # fmt: skip
    listed = "".join(
        f'<li class="said{k}"><b>{title}.</b> {said.format(**facts)}</li>'
        for k, (title, said) in enumerate(STAGES, 1)
    )
    choices = [("play", "play"), *((str(k), str(k)) for k in range(1, 7))]
    radios = "".join(
        f'<label><input type="radio" name="stage" value="{value}"'
        f"{' checked' if value == 'play' else ''}> {name}</label>"
        for value, name in choices
    )
    said = f"One step of the decoder, drawn; the six stages are described beside it. \
The sentence is “{sentence['sentence']}”, and the word written is {step['word']}."
    return f"""<style>{motion(len(STAGES))}</style>
<div class="onestep">
<fieldset><legend>Stage</legend>{radios}</fieldset>
<svg viewBox="0 0 {WIDTH} 500" role="img" aria-label="{escape(said)}">
{words}{groups}</svg>
<ol>{listed}</ol>
</div>
"""


def below(number):
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in str(number))


def sub(letter, number):
    return f"<i>{letter}</i><sub>{number}</sub>"


def motion(count):
    """The style by which parts appear in turn, and stay where a stage is chosen."""
    total = SECONDS * (count + 1)  # the last stage stays a while
    moving, still = [], []
    for k in range(1, count + 1):
        start, end = (100 * n / (count + 1) for n in (k - 1, k if k < count else k + 1))
        play = '.onestep:has([value="play"]:checked)'
        moving.append(
            f"@keyframes part{k} {{ 0%, {start:.1f}% {{ opacity: {int(k == 1)} }} "
            f"{start + 2:.1f}%, 100% {{ opacity: 1 }} }}\n"
            f"@keyframes said{k} {{ {start:.1f}%, {end - 0.1:.1f}% "
            f"{{ border-color: var(--now) }} }}\n"
            f"{play} .p{k} {{ animation: part{k} {total}s infinite }}\n"
            f"{play} .said{k} {{ animation: said{k} {total}s step-end infinite }}"
        )
        chosen = f'.onestep:has([value="{k}"]:checked)'
        still.append(f"{chosen} .said{k} {{ border-color: var(--now) }}")
        later = [f"{chosen} .p{other}" for other in range(k + 1, count + 1)]
        if later:
            still.append(f"{', '.join(later)} {{ opacity: 0 }}")
    moving, still = "\n".join(moving), "\n".join(still)
    return f"@media (prefers-reduced-motion: no-preference) {{\n{moving}\n}}\n{still}"


# --- the explorer: explorer.js draws, from numbers that stand in the page ------------


def explorer(steps):
    numbers = json.dumps(steps["sentences"], ensure_ascii=False).replace("<", "\\u003c")
    options = "".join(
        f'<option value="{k}">{escape(s["sentence"])} → {s["language"]}</option>'
        for k, s in enumerate(steps["sentences"])
    )
    return f"""<div id="explorer">
<p><label>Sentence <select id="ex-sentence">{options}</select></label></p>
<p><label>Step <input type="range" id="ex-step" min="1" value="1"></label>
<button type="button" id="ex-back">back</button>
<button type="button" id="ex-on">on</button></p>
<p id="ex-said" aria-live="polite"></p>
<div class="scrolls" tabindex="0" role="region" aria-label="Heatmap">
<table id="ex-map"></table></div>
<p>Probability of the next word:</p>
<table id="ex-choices"></table>
<noscript><p>This page needs JavaScript.</p></noscript>
</div>
<script type="application/json" id="ex-numbers">{numbers}</script>
<script src="_static/explorer.js" defer></script>
"""
