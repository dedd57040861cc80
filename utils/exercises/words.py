"""The exercises of notebook 01. B sentences, S source and T target positions."""

from utils.exercises.engine import Exercise
from utils.exercises.inputs import case, draw

pad = Exercise(
    "pad",
    """
def padded(sentences):  # B lists of ids -> ids (B, S), lens (B,)
    lens = [len(ids) for ids in sentences]
    rows = [ids + [0] * (max(lens) - len(ids)) for ids in sentences]
    return torch.tensor(rows), torch.tensor(lens)
""",
    {
        "Each sentence is a row of ids (B, S), as long as the longest, and 0 fills it "
        "up. lens (B,) are the lengths before that, <eos> counted.": [
            ([[5, 6, 4, 2], [7, 2]],),
            ([[9, 8, 5, 4, 2], [4, 8, 2], [2]],),
        ],
        "Here the first sentence isn't the longest, or none is shorter.": [
            ([[8, 2], [5, 6, 4, 2], [7, 9, 2]],),
            ([[6, 5, 2], [4, 4, 2]],),
            ([[30, 2]],),
        ],
    },
    """
The padding stands before the words. Where does the GRU read it then?
    ids + [0] * (max(lens) - len(ids)) => [0] * (max(lens) - len(ids)) + ids
The rows have different lengths. How many zeros does a sentence of n ids lack?
    max(lens) - len(ids) => max(lens)
    => return torch.tensor(sentences), torch.tensor([len(ids) for ids in sentences])
Every row is as long as the first. Which sentence says how wide the batch is?
    max(lens) => lens[0]
These are the lengths after padding. Each sentence keeps its own.
    torch.tensor(lens) => torch.tensor([len(ids) for ids in rows])
<eos> is a word for the encoder: it counts in the length.
    torch.tensor(lens) => torch.tensor(lens) - 1
""",
)

embedding_lookup = Exercise(
    "embedding_lookup",
    """
def rows_of(ids, table):  # (B, S), (V, E) -> (B, S, E)
    return table[ids]
""",
    {
        "Each id is the number of a row, counted from 0. In the result, (B, S, E), the "
        "row of the table stands where its id stands in `ids`. (The table is given: a "
        "new nn.Embedding would hold other numbers.)": [
            case(5, [[5, 1, 3], [4, 2, 0]], 7, 4)[::-1],
            case(1, [[2, 2, 6], [1, 4, 2]], 7, 4)[::-1],
            case(2, [[3, 1, 2, 2, 0]], 5, 6)[::-1],
            case(3, [[1, 6], [8, 3], [7, 3], [5, 5]], 9, 5)[::-1],
            case(4, [[2, 0, 1], [1, 1, 0], [2, 1, 0]], 3, 3)[::-1],
        ],
    },
    """
Columns are picked. Which axis of the table counts the words?
    table[ids] => table[:, ids]
Integers meet floats in a product of matrices. What makes floats of them?
    table[ids] => F.one_hot(ids, len(table)) @ table
one_hot isn't told how many words there are: its rows end at this batch's largest id.
    table[ids] => F.one_hot(ids).float() @ table
These are the one-hot vectors. What is each of them multiplied by?
    table[ids] => F.one_hot(ids, len(table))
Only the first sentence is looked up. Where does `return` stand?
    table[ids] => table[ids[0]]
""",
    gradients=True,
)


def _drawn(*sizes):
    shapes = [((B, E), (B, H), (3 * H, E), (3 * H, H), (3 * H,)) for B, E, H in sizes]
    return [draw(n, *each) for n, each in enumerate(shapes)]


SENTENCES = ([5, 6, 7],), ([8, 4, 9],), ([4],), ([11, 5, 5, 9, 30],)

gru_step = Exercise(
    "gru_step",
    """
def one_step(x, h, W, U, b):  # (B, E), (B, H), (3H, E), (3H, H), (3H,) -> (B, H)
    word_r, word_z, word_n = (x @ W.T).chunk(3, dim=-1)  # (B, H) each
    state_r, state_z, state_n = (h @ U.T + b).chunk(3, dim=-1)
    r = torch.sigmoid(word_r + state_r)
    z = torch.sigmoid(word_z + state_z)
    n = torch.tanh(word_n + r * state_n)
    return (1 - z) * n + z * h
""",
    {
        "Follow the formulas one by one: r and z, n, the new state. A row of x is "
        "one word, and a row of W and U makes one number of a gate.": _drawn(
            (5, 3, 4), (5, 3, 4)
        ),
        "Here are other sizes. Is one written into your code, or squeezed away?": (
            _drawn((2, 2, 2), (5, 4, 2), (1, 2, 3))
        ),
    },
    """
The reset and update gates are exchanged: in the order r, z, n, or where one is used.
    word_r, word_z => word_z, word_r ;; state_r, state_z => state_z, state_r
    r * state_n => z * state_n
    (1 - z) * n + z * h => (1 - r) * n + r * h
1 - z and z are exchanged: where z is 1, the old state stays.
    (1 - z) * n + z * h => z * n + (1 - z) * h
The new state has a share of n and a share of h. One isn't the share of the formula.
    (1 - z) * n => n
    + z * h => + h
In your code the reset gate multiplies the state before U does. It should multiply the
product.
    r * state_n => (r * h) @ U.chunk(3)[2].T + b.chunk(3)[2]
The candidate's bias must be added before the reset gate multiplies.
    x @ W.T => x @ W.T + b ;; h @ U.T + b => h @ U.T
The bias is missing, or is added twice.
    h @ U.T + b => h @ U.T
    x @ W.T => x @ W.T + b
The reset gate must multiply what is read of the old state, and nothing else.
    r * state_n => state_n
    word_n + r * state_n => r * (word_n + state_n)
A gate is between 0 and 1, a candidate between -1 and 1. Which function makes each so?
    torch.sigmoid => torch.tanh
    torch.sigmoid =>
    torch.tanh =>
The sentences are cut into three, and not the gates. Along which axis do those stand?
    , dim=-1) => )
Your product is (3H, B), and (B, 3H) is wanted: x @ W.T, and h @ U.T in the same way.
    x @ W.T).chunk(3, dim=-1) => W @ x.T).chunk(3)
    x @ W.T => W @ x.T
    x @ W.T => W @ x.T ;; h @ U.T => U @ h.T
The blocks of W and U are rows: cut them along axis 0, or cut the products.
    (x @ W.T) => W ;; (h @ U.T + b) => U
    (x @ W.T) => W ;; (word_r => (x @ word_r.T
""",
    gradients=True,
)

shift = Exercise(
    "shift",
    """
def shifted(ids):  # [5, 6, 7] -> (reads, writes), two lists
    return [1, *ids], [*ids, 2]
""",
    {
        "Both lists have one id more than the sentence: what is read begins with 1 for "
        "<bos>, and what is written ends with 2 for <eos>.": SENTENCES
    },
    """
Both lists are equal. The decoder must read the word before the one that it writes.
    => return [1, *ids, 2], [1, *ids, 2]
    => return [1, *ids], [1, *ids]
The two are exchanged: <bos> is read, and <eos> is written.
    => return [*ids, 2], [1, *ids]
Here <eos> is read, or <bos> is written. Nothing follows <eos>, and <bos> is given. (Did
your code change `ids` itself?)
    [1, *ids] => [1, *ids, 2]
    [*ids, 2] => [1, *ids, 2]
<eos> is missing. A decoder that never learns to write it never ends.
    , 2] => ]
""",
)

sentence_log_probability = Exercise(
    "sentence_log_probability",
    """
def log_of_product(logits, targets):  # (B, T, V), (B, T) -> (B,)
    logs = logits.log_softmax(dim=-1)  # (B, T, V)
    chosen = logs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)  # (B, T)
    return chosen.masked_fill(targets == 0, 0.0).sum(dim=1)
""",
    {
        "The log probability of a sentence is the sum of the log probabilities of its "
        "target words, <eos> included. A softmax over the vocabulary makes them.": [
            case(6, [[4, 3, 2], [5, 3, 2]], 2, 3, 6),
            case(7, [[3, 6, 4, 2], [4, 5, 6, 2], [3, 3, 4, 2]], 3, 4, 7),
        ],
        "Id 0 is padding. Its positions are no factors; the softmax stays as it is.": [
            case(0, [[4, 3, 2], [5, 2, 0]], 2, 3, 6),
            case(1, [[3, 2, 0], [3, 5, 2]], 2, 3, 6),
            case(2, [[6, 4, 2, 0], [2, 0, 0, 0], [4, 5, 6, 2]], 3, 4, 7),
            case(4, [[3, 3, 3, 2], [3, 2, 0, 0], [1, 3, 2, 0], [2, 0, 0, 0]], 4, 4, 4),
        ],
        "One sentence has 80 words, and the product of their probabilities is so small "
        "that it becomes 0, whose log is -inf. First come the logs, then the sum.": [
            case(5, [20 * [5, 3, 4, 6] + [2], [4, 6, 2] + 78 * [0]], 2, 81, 9),
        ],
    },
    """
Padding is counted. Which positions have no word?
    .masked_fill(targets == 0, 0.0) =>
These are means. The logs of all factors are added.
    .sum(dim=1) => .mean(dim=1)
One number came for the whole batch. Each sentence has its own.
    .sum(dim=1) => .sum()
The probabilities are added. They are multiplied, so their logs are added.
    log_softmax => softmax
The logits are taken as they are. What makes probabilities of them?
    .log_softmax(dim=-1) =>
The softmax runs over the positions. Over what do the probabilities sum to 1?
    .log_softmax(dim=-1) => .log_softmax(dim=1)
Give gather an index with as many axes as the numbers have: targets.unsqueeze(-1).
    .gather(-1, targets.unsqueeze(-1)).squeeze(-1) => .gather(-1, targets)
    .gather(-1, targets.unsqueeze(-1)).squeeze(-1) => [range(len(targets)), targets]
`:` pairs every position with every target. Each position has a target of its own.
    => return logits.log_softmax(-1)[:, :, targets]
cross_entropy and nll_loss want the words of the vocabulary on axis 1, after the batch.
    => return F.cross_entropy(logits, targets)
""",
    gradients=True,
)
