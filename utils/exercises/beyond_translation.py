"""The exercises of notebook 12. B sentences in a batch, T target and S source words."""

import torch

from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw

LOOKS = """
<unk> voit max | rosa sees max . | 0 1 2
le chat de <unk> dort | rosa 's cat sleeps | 1 2 0 0 3
<unk> et <unk> chantent | rosa and max sing . | 0 1 2 3
<unk> aide <unk> | max is helped by rosa | 4 3 0
il dort . | he sleeps . | 0 1 2
"""
LOOKS = [
    (words, source, (2 * torch.eye(len(source))[[*map(int, at)]]).softmax(dim=1))
    for words, source, at in (
        (side.split() for side in row.split("|")) for row in LOOKS.strip().splitlines()
    )
]
replace_unknown = Exercise(
    "replace_unknown",
    """
def my_replace(words, source, weights):  # T words, S words, (T, S) -> T words
    looks = weights.argmax(dim=1).tolist()
    return [source[looks[i]] if w == "<unk>" else w for i, w in enumerate(words)]
""",
    {
        "Each <unk> becomes the source word with the largest weight in its own row; "
        "all other words stay.": LOOKS[:2],
        "There are several <unk> here, or none. Each looks for itself.": LOOKS[2:],
    },
    """
A row belongs to a target word. Over which axis of (T, S) must argmax run?
    dim=1 => dim=0
Known words are replaced, too. Only <unk> is to be.
    if w == "<unk>" else w => if w else w
One place of the whole matrix is taken for every <unk>. Each has a row of its own.
    weights.argmax(dim=1).tolist() => [int(weights.argmax()) % len(source)] * len(words)
The place of the <unk> in the target is taken for a place in the source.
    source[looks[i]] => source[i]
""",
)

WORDS = ["<pad>", "<bos>", "<eos>", "<unk>", "anna", "sees", "voit", "."]
VOCAB = {word: n for n, word in enumerate(WORDS)}
PAIRS = """
anna sees . | anna voit .
rosa sees anna . | rosa voit anna .
rosa sees max . | max voit rosa .
max sees max . | max voit max .
rosa sees max and rosa . | rosa voit max et rosa .
anna sees an owl . | anna voit une chouette .
"""
PAIRS = [
    (*(side.split() for side in row.split("|")), VOCAB)
    for row in PAIRS.strip().splitlines()
]
extended_ids = Exercise(
    "extended_ids",
    """
def my_ids(source, target, vocab):  # words, words, {word: id} -> ids, ids
    own = dict(vocab)
    for word in source:
        own.setdefault(word, len(own))
    return [own[w] for w in source], [own.get(w, vocab["<unk>"]) for w in target]
""",
    {
        "A word that the vocabulary has keeps its id. The first unknown word of the "
        "source has the id V, and the same word in the target has it, too.": PAIRS[:2],
        "There are two unknown words. The order of the source decides which has the "
        "id V, and which V + 1.": PAIRS[2:3],
        "An unknown word stands twice in the source: it is one word, and has one id. "
        "The ids go on without a gap.": PAIRS[3:4],
        "A target word that neither the vocabulary nor the source has is <unk>: "
        "nothing could write it.": PAIRS[4:],
    },
    """
The place in the sentence is taken for the number of the unknown word.
    setdefault(word, len(own)) => setdefault(word, len(vocab) + source.index(word))
Unknown words are read as <unk>, as before. Then no model can tell them apart.
    own.setdefault(word, len(own)) => own.setdefault(word, vocab["<unk>"])
Unknown words are numbered as the target has them. But the source is read first.
    for word in source => for word in sorted(source, key=(target + source).index)
A word that stands twice is numbered anew, and gets a second id.
    own.setdefault(word, len(own)) => own[word] = vocab.get(word, len(own))
All unknown words share the id V.
    setdefault(word, len(own)) => setdefault(word, len(vocab))
The first unknown word has the id V + 1. V words have the ids 0 to V - 1.
    setdefault(word, len(own)) => setdefault(word, len(own) + 1)
Words that the target alone has get an id, too. No source word has it, so it can't be
copied.
    in source: => in source + target:
""",
)


def _mixture(seed, source, V, slots, padded=0):
    B, S = len(source), len(source[0])
    p_vocab, weights, gate = draw(seed, (B, V), (B, S), (B, 1))
    weights = weights.softmax(1)
    if padded:
        weights[:, -padded:] = 0
        weights /= weights.sum(1, keepdim=True)
    p_gen = gate.sigmoid()
    return p_vocab.softmax(1), p_gen, weights, torch.tensor(source), slots


mixture = Exercise(
    "mixture",
    """
def my_mixture(p_vocab, p_gen, weights, source, slots):  # (B, V), (B, 1), 2 x (B, S)
    p = torch.cat((p_gen * p_vocab, torch.zeros(len(p_vocab), slots)), dim=1)
    return p.scatter_add(1, source, (1 - p_gen) * weights)  # (B, V + slots)
""",
    {
        "No source word is in the vocabulary here, and none stands twice: its "
        "probability is (1 - p_gen) times its weight.": [
            _mixture(0, [[5, 6, 7], [6, 5, 7]], 5, 3),
            _mixture(1, [[8, 6]], 6, 4),
        ],
        "A source word that the vocabulary has can be written and copied. Both "
        "probabilities count.": [
            _mixture(2, [[3, 6, 4], [2, 3, 1]], 5, 2),
            _mixture(3, [[1, 2, 3]], 4, 1),
        ],
        "A source word stands twice. It is copied from either place: their weights are "
        "added. At padding, id 0, the weights are 0.": [
            _mixture(4, [[5, 3, 5, 2]], 5, 2),
            _mixture(5, [[6, 6, 0], [5, 1, 0]], 5, 2, padded=1),
        ],
    },
    """
Something is overwritten that should be added: scatter puts a value in place of the one
that is there, scatter_add adds it.
    scatter_add => scatter
The row sums to more than 1: what is copied isn't multiplied by 1 - p_gen.
    (1 - p_gen) * weights => weights
The row sums to more than 1: what is written isn't multiplied by p_gen.
    p_gen * p_vocab => p_vocab
p_gen is the share of what is written from the vocabulary, not of what is copied.
    p_gen * p_vocab => (1 - p_gen) * p_vocab ;; * weights => * 0 + p_gen * weights
p_vocab is a distribution already, and softmax is taken of it again.
    p_gen * p_vocab => p_gen * p_vocab.softmax(1)
""",
)
