"""Write steps.json: sentences that the shipped models translate, step by step.

    python -m tools.site.steps

The site shows them where no kernel runs. Numbers are rounded to what is drawn.
"""

import json
from pathlib import Path

from utils.checkpoint import load_checkpoint
from utils.explorer import explore

HERE = Path(__file__).resolve().parent
MODELS = HERE.parents[1] / "data" / "models"
LANGUAGES = {"fr": "French", "zh": "Chinese"}
SENTENCES = [
    "I love to eat apples.",
    "The girl sings in the garden.",
    "The old hat is not blue.",
    "The fish eats the cat.",
]
DRAWN = ("fr", SENTENCES[2], 3)  # language, sentence and step of the page "One step"
NUMBERS = 12  # of a state or context, as many as the drawing has room for


def rounded(numbers, places=3):
    return [round(float(x), places) for x in numbers]


def told(sentence, language, found):
    """What the site shows of an Exploration."""
    return {
        "language": LANGUAGES[language],
        "sentence": sentence,
        "source": found.source_tokens,
        "text": found.text,
        "steps": [
            {
                "word": step.word,
                "scores": rounded(step.scores, 2),
                "weights": rounded(step.weights),
                "choices": {word: round(p, 3) for word, p in step.choices.items()},
            }
            for step in found.steps
        ],
    }


def drawn(found, number):
    """The numbers of one step that the drawing needs besides."""
    before, after = found.steps[number - 1 : number + 1]
    return {
        "step": number,
        "query": rounded(before.query[:NUMBERS]),
        "context": rounded(before.context[:NUMBERS]),
        "after": rounded(after.query[:NUMBERS]),
        "sizes": [before.query.size, before.context.size],
    }


def steps():
    sentences, one = [], None
    for language in LANGUAGES:
        saved = load_checkpoint(MODELS / f"village-en-{language}.safetensors")
        for sentence in SENTENCES:
            found = explore(saved.model, sentence, saved.src_vocab, saved.tgt_vocab)
            if (language, sentence) == DRAWN[:2]:
                one = {"sentence": len(sentences), **drawn(found, DRAWN[2])}
            sentences.append(told(sentence, language, found))
    return {"one": one, "sentences": sentences}


if __name__ == "__main__":
    text = json.dumps(steps(), ensure_ascii=False, separators=(",", ":"))
    (HERE / "steps.json").write_text(
        text.replace('{"language"', '\n{"language"') + "\n", "utf-8"
    )
