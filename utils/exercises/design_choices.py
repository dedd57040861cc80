"""The exercises of notebook 09. B sentences, Q queries, K keys, H hidden units."""

from utils.attention import Attention
from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw
from utils.exercises.scoring import joined_scores


def _scores_of(kind, queries, keys, W, w_v):
    """A learner's scores, for a class with these weights."""
    attention = kind(keys.shape[-1], queries.shape[-1], len(w_v))
    for name, weight in (("W", W), ("w_v", w_v.unsqueeze(0))):
        layer, (rows, columns) = getattr(attention, name), weight.shape
        if layer.bias is not None or layer.weight.shape != weight.shape:
            raise ValueError(f"{name} isn't nn.Linear({columns}, {rows}, bias=False)")
        del layer.weight
        layer.weight = weight  # so that a gradient reaches the case's own tensor
    return attention.score(queries, attention.project_keys(keys))


concat_attention = Exercise(
    "concat_attention",
    """
class ConcatAttention(Attention):
    def __init__(self, key_size, query_size, num_hiddens):
        super().__init__(key_size, query_size)
        self.W = nn.Linear(query_size + key_size, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)

    def project_keys(self, keys):
        return keys @ self.W.weight[:, self.query_size :].T  # (B, K, H)

    def score(self, queries, projected_keys):
        projected = queries @ self.W.weight[:, : self.query_size].T  # (B, Q, H)
        sums = projected.unsqueeze(2) + projected_keys.unsqueeze(1)
        return self.w_v(torch.tanh(sums)).squeeze(-1)
""",
    {"W projects [s; h], the query s first; then tanh and w_v.": joined_scores.cases},
    """
The key comes first. In [s; h] the left columns of W belong to the query.
    self.query_size :] => : self.key_size] ;; : self.query_size] => self.key_size :]
W or w_v isn't the layer that is asked for: one without bias, and of which sizes?
    num_hiddens, bias=False => num_hiddens
The tanh is missing. Without it, the query adds the same to every score of a row, and
softmax takes that out again.
    torch.tanh(sums) => sums
These are weights. Scores are asked for, the numbers before the softmax.
    .squeeze(-1) => .squeeze(-1).softmax(dim=-1)
""",
    gradients=True,
    unwrap=_scores_of,
    given=("utils.attention.",),
    names={"Attention": Attention},
)

SHAPES = [(2, 3, 4, 5), (2, 3, 4, 5), (4, 4, 4, 4), (3, 1, 2, 6), (1, 2, 5, 3)]

scaled_dot = Exercise(
    "scaled_dot",
    """
def mended_scaled_dot(queries, keys):  # (B, Q, H), (B, K, H) -> (B, Q, K)
    return queries @ keys.transpose(1, 2) / math.sqrt(queries.shape[-1])
""",
    {
        "Divide the products by one number, so that they don't grow with H.": [
            draw(n, (B, Q, H), (B, K, H)) for n, (B, Q, K, H) in enumerate(SHAPES)
        ],
    },
    """
This divides by too much. What is the typical size of a sum of H products?
    math.sqrt(queries.shape[-1]) => queries.shape[-1]
The scores aren't scaled: the longer the vectors, the larger they are.
    / math.sqrt(queries.shape[-1]) =>
The number of keys is taken. The size of a vector counts.
    queries.shape[-1] => keys.shape[1]
These are weights. Scores are asked for, the numbers before the softmax.
    return => return ( ;; [-1]) => [-1])).softmax(dim=-1)
""",
    gradients=True,
)

told_apart = Exercise(
    "told_apart",
    """
def verdict(first, second):  # two lists of numbers -> a string
    if min(first) > max(second):
        return "first"
    return "second" if min(second) > max(first) else "not told apart"
""",
    {
        'All seeds of one arm lie above all of the other: "first" or "second"?': [
            ([90.5, 91.0, 92.0], [88.0, 89.0, 90.0]),
            ([88.0, 89.0, 90.0], [90.5, 91.0, 92.0]),
            ([60.5, 61.0], [60.0, 20.0, 40.0]),
            ([20.0, 45.0, 10.0], [50.0, 46.0]),
        ],
        "The two overlap: a seed of each arm lies above one of the other.": [
            ([85.0, 90.0, 95.0], [84.0, 89.0, 94.0]),
            ([70.0, 71.0, 99.0], [75.0, 76.0, 77.0]),
            ([90.0, 89.0, 91.0], [91.5, 88.0, 87.0]),
            ([10.0, 80.0, 82.0], [50.0, 60.0, 70.0]),
        ],
        "Two seeds are equal, so neither arm lies above the other.": [
            ([80.0, 81.0, 82.0], [78.0, 79.0, 80.0]),
            ([78.0, 79.0, 80.0], [80.0, 81.0, 82.0]),
            ([5.0, 5.0], [5.0, 5.0]),
        ],
    },
    """
The answers "first" and "second" are exchanged.
    "first" => "1" ;; "second" => "first" ;; "1" => "second"
One number of each arm is compared. Which seeds must beat which?
    min => np.mean ;; max => np.mean
    min => max
    max => min
The seeds are compared in pairs. Each seed must beat every seed of the other arm.
    min(first) > max(second) => all(x > y for x, y in zip(first, second))
Two equal seeds are taken as apart.
    > => >=
""",
)
