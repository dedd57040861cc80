"""The exercises of notebook 01.

B sentences in a batch, S source and T target positions, V words in a vocabulary, E the
size of a word's vector, H hidden units.
"""

import torch
from torch import nn
from torch.nn import functional as F

from utils.exercises.old_engine import Exercise
from utils.exercises.inputs import draw, real_positions


def looked_up_by_loops(ids, table):
    """Ids (B, S), table (V, E) -> the row of each word (B, S, E)."""
    sentences = []
    for b in range(len(ids)):
        rows = []
        for j in range(ids.shape[1]):
            rows.append(table[int(ids[b, j])])
        sentences.append(torch.stack(rows))
    return torch.stack(sentences)


def _with_seed(answer, *arguments):
    """The answer's result; weights drawn anew are the same at every call."""
    torch.manual_seed(9)  # no case's seed
    return answer(*arguments)


def _table_case(seed, ids, V, E):
    return torch.tensor(ids), *draw(seed, (V, E))


embedding_lookup = Exercise(
    "embedding_lookup",
    looked_up_by_loops,
    cases=[
        _table_case(0, [[5, 1, 3], [4, 2, 0]], 7, 4),
        _table_case(1, [[2, 2, 6], [1, 4, 2]], 7, 4),
        _table_case(2, [[3, 1, 2, 2, 0]], 5, 6),
        _table_case(3, [[1, 6], [8, 3], [7, 3], [5, 5]], 9, 5),
        _table_case(4, [[2, 0, 1], [1, 1, 0], [2, 1, 0]], 3, 3),
    ],
    mistakes={
        "this picks columns. Which axis of the table counts the words?": [
            lambda ids, table: table[:, ids],
            lambda ids, table: table.T[ids],
            lambda ids, table: table[:, ids].permute(1, 2, 0),
            lambda ids, table: F.one_hot(ids, len(table)).float() @ table.T,
        ],
        "whole numbers meet fractions in a matrix product. One-hot rows must be "
        "made fractions first; and an id itself isn't to be multiplied at all: it only "
        "says which row.": [
            lambda ids, table: ids @ table,
            lambda ids, table: F.one_hot(ids, len(table)) @ table,
            lambda ids, table: F.one_hot(ids) @ table,
            lambda ids, table: torch.matmul(ids.unsqueeze(-1), table),
        ],
        "the ids are multiplied as if they were quantities. Word 6 isn't twice word 3: "
        "an id only says which row.": [
            lambda ids, table: ids.float() @ table,
            lambda ids, table: ids.unsqueeze(-1) * table,
            lambda ids, table: ids.unsqueeze(-1) * table.mean(0),
            lambda ids, table: ids[..., None, None] * table,
            lambda ids, table: ids[..., None] * table[0],
            lambda ids, table: ids.unsqueeze(-1) * table.sum(0),
            lambda ids, table: torch.einsum("bs,ve->bse", ids, table),
        ],
        "one_hot isn't told how many words the table has. Left alone, it makes its "
        "rows as long as the largest id of this batch needs: how long must they be?": [
            lambda ids, table: F.one_hot(ids, table.shape[1]).float() @ table,
            lambda ids, table: torch.einsum(
                "bsv,ve->bse", F.one_hot(ids).float(), table
            ),
            lambda ids, table: F.one_hot(ids).float() @ table,
            lambda ids, table: F.one_hot(ids).to(table.dtype) @ table,
        ],
        "these are the one-hot vectors. What is each of them multiplied with?": [
            lambda ids, table: F.one_hot(ids, len(table)),
            lambda ids, table: F.one_hot(ids, len(table)).float(),
            lambda ids, table: F.one_hot(ids),
            lambda ids, table: F.one_hot(ids).float(),
        ],
        "every word gets the row before its own. Rows are counted from 0 in code, and "
        "so are ids.": [lambda ids, table: table[ids - 1]],
        "every word gets the row after its own. Rows are counted from 0 in code, and "
        "so are ids.": [lambda ids, table: table[ids + 1]],
        "the words of a sentence are added up. Each word keeps a vector of its own: "
        "(B, S, E).": [
            lambda ids, table: table[ids].sum(1),
            lambda ids, table: table[ids].sum(-2),
        ],
        "the words of a sentence are averaged. Each word keeps a vector of its own: "
        "(B, S, E).": [lambda ids, table: table[ids].mean(1)],
        "the numbers of a vector are added up. Where is the axis of E?": [
            lambda ids, table: table[ids].sum(2),
            lambda ids, table: table[ids].mean(2),
            lambda ids, table: table.sum(1)[ids],
        ],
        "the sentences are run together into one. Which shape have the ids?": [
            lambda ids, table: table[ids.flatten()],
            lambda ids, table: torch.cat([table[row] for row in ids]),
            lambda ids, table: F.one_hot(ids.flatten(), len(table)).float() @ table,
            lambda ids, table: torch.stack([table[i] for i in ids.flatten()]),
        ],
        "positions stand before sentences. Batch first is asked for: (B, S, E).": [
            lambda ids, table: table[ids.T],
            lambda ids, table: table[ids].transpose(0, 1),
            lambda ids, table: torch.stack([table[row] for row in ids], dim=1),
        ],
        "the numbers of a vector stand before the positions: (B, E, S). The last axis "
        "is E.": [
            lambda ids, table: table[ids].transpose(1, 2),
            lambda ids, table: torch.stack([table[row].T for row in ids]),
        ],
        "sizes are kept, and what belongs together isn't: view and reshape don't "
        "exchange axes.": [
            lambda ids, table: table[ids.T].reshape(*ids.shape, -1),
            lambda ids, table: table[ids.T].view(*ids.shape, -1),
        ],
        "only the first sentence is looked up.": [
            lambda ids, table: table[ids[0]],
            lambda ids, table: table[ids[:1]],
        ],
        "only the first word of each sentence is looked up.": [
            lambda ids, table: table[ids[:, 0]],
            lambda ids, table: table[ids[:, :1]],
        ],
        "only the last word of each sentence is looked up.": [
            lambda ids, table: table[ids[:, -1]]
        ],
        "the last word of each sentence is left out.": [
            lambda ids, table: table[ids[:, :-1]],
            lambda ids, table: F.pad(table[ids[:, :-1]], (0, 0, 0, 1)),
        ],
        "padding is made 0, which nobody asked for. Id 0 has a row like every id.": [
            lambda ids, table: table[ids] * (ids != 0).unsqueeze(-1)
        ],
        "the number of the position is looked up. Which word stands there?": [
            lambda ids, table: table[: ids.shape[1]].expand(len(ids), -1, -1)
        ],
        "the vectors of a sentence are joined into a long one. Each word is a row of "
        "its own.": [lambda ids, table: table[ids].flatten(1)],
        "these are rows of a new table of random numbers. The table is given.": [
            lambda ids, table: nn.Embedding(*table.shape)(ids),
            lambda ids, table: nn.Embedding(table.shape[0], table.shape[1])(ids),
            lambda ids, table: torch.randn(*table.shape)[ids],
        ],
        "gather and take pick single numbers. A whole row is asked for.": [
            lambda ids, table: table.gather(0, ids),
            lambda ids, table: torch.gather(table, 1, ids),
            lambda ids, table: torch.take(table, ids),
            lambda ids, table: table[ids, ids],
            lambda ids, table: table.expand(len(ids), -1, -1).gather(
                1, ids.unsqueeze(-1)
            ),
            lambda ids, table: (
                table.expand(len(ids), -1, -1).gather(1, ids.unsqueeze(-1)).squeeze(-1)
            ),
        ],
        "index_select takes one list of positions, and ids has two axes. How can one "
        "list be made of it, and how does the result get its axes back?": [
            lambda ids, table: table.index_select(0, ids),
        ],
        "what stands in the brackets must be whole numbers. Were the ids made "
        "fractions, or does the table stand there?": [
            lambda ids, table: table[ids.float()],
            lambda ids, table: ids[table],
        ],
        "nn.Embedding takes two sizes, V and E, and makes a table of its own.": [
            lambda ids, table: nn.Embedding(table)(ids)
        ],
        "the arguments are exchanged: F.embedding reads the ids first.": [
            lambda ids, table: F.embedding(table, ids)
        ],
    },
    gradients=True,
    unwrap=_with_seed,
)


def gru_step_by_loops(x, h, W, U, b):
    """Words x (B, E), states h (B, H), W (3H, E), U (3H, H), b (3H,): gates r, z, n
    -> new states (B, H).
    """
    B, H = h.shape
    rows = []
    for i in range(B):
        read = [(W[k] * x[i]).sum() for k in range(3 * H)]
        kept = [(U[k] * h[i]).sum() + b[k] for k in range(3 * H)]
        row = []
        for k in range(H):
            r = torch.sigmoid(read[k] + kept[k])
            z = torch.sigmoid(read[H + k] + kept[H + k])
            n = torch.tanh(read[2 * H + k] + r * kept[2 * H + k])
            row.append((1 - z) * n + z * h[i, k])
        rows.append(torch.stack(row))
    return torch.stack(rows)


def _product(M, v):
    return v @ M.T


def _gru(
    gates=lambda read, kept, b: torch.sigmoid(read + kept + b),
    candidate=lambda read, kept, b, r, h: torch.tanh(read + r * (kept + b)),
    new=lambda r, z, n, h, s: (1 - z) * n + z * h,
    order="rzn",
    of_word=_product,
    of_state=_product,
):
    """An answer, in which a part of the step may be another."""

    def answer(x, h, W, U, b):
        read, kept, bias = (
            dict(zip(order, parts, strict=True))
            for parts in (
                [of_word(part, x) for part in W.chunk(3)],
                [of_state(part, h) for part in U.chunk(3)],
                b.chunk(3),
            )
        )
        r, z = (gates(read[g], kept[g], bias[g]) for g in "rz")
        n = candidate(read["n"], kept["n"], bias["n"], r, h)
        return new(r, z, n, h, kept["n"] + bias["n"])

    return answer


def _reset_before(x, h, W, U, b):
    """The reset gate meets the state before U does."""
    (W_r, W_z, W_n), (U_r, U_z, U_n) = W.chunk(3), U.chunk(3)
    b_r, b_z, b_n = b.chunk(3)
    r = torch.sigmoid(x @ W_r.T + h @ U_r.T + b_r)
    z = torch.sigmoid(x @ W_z.T + h @ U_z.T + b_z)
    n = torch.tanh(x @ W_n.T + (r * h) @ U_n.T + b_n)
    return (1 - z) * n + z * h


def _reset_reset(x, h, W, U, b):
    """The update gate reads the state that the reset gate has left."""
    (W_r, W_z, W_n), (U_r, U_z, U_n) = W.chunk(3), U.chunk(3)
    b_r, b_z, b_n = b.chunk(3)
    r = torch.sigmoid(x @ W_r.T + h @ U_r.T + b_r)
    z = torch.sigmoid(x @ W_z.T + (r * h) @ U_z.T + b_z)
    n = torch.tanh(x @ W_n.T + r * (h @ U_n.T + b_n))
    return (1 - z) * n + z * h


def _batch_cut(dim):
    """The stacked results, cut along another axis than the gates'."""

    def answer(x, h, W, U, b):
        (W_r, W_z, W_n), (U_r, U_z, U_n) = (
            (x @ W.T).chunk(3, dim=dim),
            (h @ U.T + b).chunk(3, dim=dim),
        )
        r, z = torch.sigmoid(W_r + U_r), torch.sigmoid(W_z + U_z)
        n = torch.tanh(W_n + r * U_n)
        return (1 - z) * n + z * h

    return answer


def _columns_cut(x, h, W, U, b):
    """The matrices cut between columns."""
    (W_r, W_z, W_n), (U_r, U_z, U_n) = W.chunk(3, dim=-1), U.chunk(3, dim=-1)
    b_r, b_z, b_n = b.chunk(3)
    r = torch.sigmoid(x @ W_r.T + h @ U_r.T + b_r)
    z = torch.sigmoid(x @ W_z.T + h @ U_z.T + b_z)
    return (1 - z) * torch.tanh(x @ W_n.T + r * (h @ U_n.T + b_n)) + z * h


def _whole_bias(x, h, W, U, b):
    return torch.sigmoid(x @ W.chunk(3)[0].T + h @ U.chunk(3)[0].T + b)


def _every_third(x, h, W, U, b):
    """The gates' rows taken alternately, not in blocks."""
    read, kept = x @ W.T, h @ U.T + b
    r, z = (torch.sigmoid(read[:, g::3] + kept[:, g::3]) for g in (0, 1))
    n = torch.tanh(read[:, 2::3] + r * kept[:, 2::3])
    return (1 - z) * n + z * h


def _by_columns(x, h, W, U, b):
    """Each sentence a column; returned so."""
    r, z, n = (W @ x.T).chunk(3)
    s_r, s_z, s_n = (U @ h.T + b[:, None]).chunk(3)
    r, z = torch.sigmoid(r + s_r), torch.sigmoid(z + s_z)
    n = torch.tanh(n + r * s_n)
    return (1 - z) * n + z * h.T


def _columns_without_bias_axis(x, h, W, U, b):
    return (W @ x.T + U @ h.T + b).chunk(3)[2].T


def _columns_meet_rows(x, h, W, U, b):
    r, z, n = (W @ x.T).chunk(3)
    s_r, s_z, s_n = (U @ h.T + b.unsqueeze(1)).chunk(3)
    r, z = torch.sigmoid(r + s_r), torch.sigmoid(z + s_z)
    return (1 - z) * torch.tanh(n + r * s_n) + z * h


def _gru_case(seed, B, E, H):
    return draw(seed, (B, E), (B, H), (3 * H, E), (3 * H, H), (3 * H,))


gru_step = Exercise(
    "gru_step",
    gru_step_by_loops,
    cases=[
        _gru_case(0, 2, 3, 4),
        _gru_case(1, 2, 3, 4),
        _gru_case(2, 5, 4, 2),
        _gru_case(3, 1, 2, 3),
        _gru_case(4, 2, 2, 2),
    ],
    mistakes={
        "reset gate and update gate are exchanged: in the order of the blocks (r, z, "
        "n), or in what they do.": [_gru(order="zrn")],
        "the three blocks are taken in a wrong order. It is r, z, n.": [
            _gru(order="nrz"),
            _gru(order="nzr"),
            _gru(order="znr"),
            _gru(order="rnz"),
        ],
        "(1 − z) and z are exchanged: where z is 1, the old state must stay.": [
            _gru(new=lambda r, z, n, h, s: z * n + (1 - z) * h)
        ],
        "the reset gate meets the state before U does. Here it is multiplied with the "
        "product, bias included.": [_reset_before],
        "the bias of the candidate stands outside of what the reset gate multiplies.": [
            _gru(candidate=lambda read, kept, b, r, h: torch.tanh(read + r * kept + b))
        ],
        "the reset gate isn't used: what does the candidate read of the old state?": [
            _gru(candidate=lambda read, kept, b, r, h: torch.tanh(read + kept + b))
        ],
        "the reset gate multiplies what is read of the word, too. It belongs to the "
        "old state alone.": [
            _gru(
                candidate=lambda read, kept, b, r, h: torch.tanh(r * (read + kept + b))
            )
        ],
        "the reset gate multiplies what is read of the word. It belongs to the old "
        "state.": [
            _gru(candidate=lambda read, kept, b, r, h: torch.tanh(r * read + kept + b))
        ],
        "the candidate reads the old state without its matrix U.": [
            _gru(candidate=lambda read, kept, b, r, h: torch.tanh(read + r * h + b)),
            _gru(candidate=lambda read, kept, b, r, h: torch.tanh(read + r * (h + b))),
            _gru(candidate=lambda read, kept, b, r, h: torch.tanh(read + r * h)),
        ],
        "the candidate reads the old state twice: as it is, and again through the "
        "reset gate.": [
            _gru(
                candidate=lambda read, kept, b, r, h: torch.tanh(
                    read + kept + b + r * h
                )
            ),
            _gru(
                candidate=lambda read, kept, b, r, h: torch.tanh(
                    read + kept + b + r * (kept + b)
                )
            ),
        ],
        "the candidate doesn't read the word.": [
            _gru(candidate=lambda read, kept, b, r, h: torch.tanh(r * (kept + b)))
        ],
        "the candidate reads only the word.": [
            _gru(candidate=lambda read, kept, b, r, h: torch.tanh(read)),
            _gru(candidate=lambda read, kept, b, r, h: torch.tanh(read + b)),
        ],
        "the candidate is made with the update gate. Which gate decides what it reads "
        "of the old state?": [
            _gru(order="zrn", new=lambda r, z, n, h, s: (1 - r) * n + r * h)
        ],
        "the update gate reads what the reset gate has left of the state. It reads the "
        "whole state.": [_reset_reset],
        "the bias is missing.": [
            _gru(
                gates=lambda read, kept, b: torch.sigmoid(read + kept),
                candidate=lambda read, kept, b, r, h: torch.tanh(read + r * kept),
            )
        ],
        "the bias is missing in the gates.": [
            _gru(gates=lambda read, kept, b: torch.sigmoid(read + kept))
        ],
        "the bias is missing in the candidate.": [
            _gru(candidate=lambda read, kept, b, r, h: torch.tanh(read + r * kept))
        ],
        "the bias is added twice: to what is read of the word, and to what is read of "
        "the state.": [
            _gru(
                gates=lambda read, kept, b: torch.sigmoid(read + kept + 2 * b),
                candidate=lambda read, kept, b, r, h: torch.tanh(
                    read + b + r * (kept + b)
                ),
            )
        ],
        "the gates read only the word. They read the old state, too.": [
            _gru(gates=lambda read, kept, b: torch.sigmoid(read)),
            _gru(gates=lambda read, kept, b: torch.sigmoid(read + b)),
        ],
        "the gates read only the old state. They read the word, too.": [
            _gru(gates=lambda read, kept, b: torch.sigmoid(kept)),
            _gru(gates=lambda read, kept, b: torch.sigmoid(kept + b)),
        ],
        "the gates have no sigmoid: a gate is a number between 0 and 1.": [
            _gru(gates=lambda read, kept, b: read + kept + b)
        ],
        "the gates are made by tanh: a gate is a number between 0 and 1.": [
            _gru(gates=lambda read, kept, b: torch.tanh(read + kept + b))
        ],
        "the gates are made by softmax, which lets the numbers of a state compete. "
        "Each number has a gate of its own.": [
            _gru(gates=lambda read, kept, b: (read + kept + b).softmax(-1)),
            _gru(gates=lambda read, kept, b: (read + kept + b).softmax(0)),
        ],
        "the candidate is made by sigmoid: it may be negative.": [
            _gru(
                candidate=lambda read, kept, b, r, h: torch.sigmoid(
                    read + r * (kept + b)
                )
            )
        ],
        "tanh is missing in the candidate.": [
            _gru(candidate=lambda read, kept, b, r, h: read + r * (kept + b))
        ],
        "this is the candidate alone. What stays of the old state?": [
            _gru(new=lambda r, z, n, h, s: n),
        ],
        "nothing of the old state stays: the part with z is missing.": [
            _gru(new=lambda r, z, n, h, s: (1 - z) * n),
            _gru(new=lambda r, z, n, h, s: z * n),
        ],
        "the candidate is added whole. Its share is 1 − z.": [
            _gru(new=lambda r, z, n, h, s: n + z * h)
        ],
        "the old state is added whole. Its share is z.": [
            _gru(new=lambda r, z, n, h, s: (1 - z) * n + h)
        ],
        "the new state is mixed by the reset gate.": [
            _gru(new=lambda r, z, n, h, s: (1 - r) * n + r * h)
        ],
        "the old state's share is the reset gate. It is z.": [
            _gru(new=lambda r, z, n, h, s: (1 - z) * n + r * h)
        ],
        "1 − z stands without brackets: z · n is taken from 1.": [
            _gru(new=lambda r, z, n, h, s: 1 - z * n + z * h)
        ],
        "the reset gate multiplies the part of the old state that stays, too. It says "
        "only what the candidate reads.": [
            _gru(new=lambda r, z, n, h, s: (1 - z) * n + z * (r * h))
        ],
        "the product with U is kept, bias included. The old state itself stays where z "
        "is 1.": [_gru(new=lambda r, z, n, h, s: (1 - z) * n + z * s)],
        "tanh stands around the new state once more. It belongs to the candidate.": [
            _gru(new=lambda r, z, n, h, s: torch.tanh((1 - z) * n + z * h))
        ],
        "this is the plain network's step, with the rows of r, z and n side by side: "
        "3H numbers. Each block has its own part to play.": [
            lambda x, h, W, U, b: torch.tanh(x @ W.T + h @ U.T + b)
        ],
        "a new cell has random weights of its own. W, U and b are given.": [
            lambda x, h, W, U, b: nn.GRUCell(x.shape[1], h.shape[1])(x, h)
        ],
        "W and U are exchanged. Which of them reads the words?": [
            lambda x, h, W, U, b: _gru()(x, h, U, W, b)
        ],
        "sizes are kept, and what belongs together isn't: view and reshape don't "
        "exchange the axes of a matrix.": [
            lambda x, h, W, U, b: _gru()(
                x, h, W.reshape(x.shape[1], -1).T, U.reshape(h.shape[1], -1).T, b
            ),
            lambda x, h, W, U, b: _gru()(x, h, W.reshape(x.shape[1], -1).T, U, b),
        ],
        "the gates are returned, too. The new state alone is asked for.": [
            _gru(new=lambda r, z, n, h, s: (r, z, n)),
            _gru(new=lambda r, z, n, h, s: ((1 - z) * n + z * h, z)),
        ],
        "the product with U isn't transposed. Its matrix is square, so nothing "
        "raises: a row of U makes one number.": [_gru(of_state=lambda M, v: v @ M)],
        "the matrices aren't transposed. A row of W makes one number of one gate: what "
        "has to be lined up with x?": [
            _gru(of_word=lambda M, v: v @ M, of_state=lambda M, v: v @ M),
            _gru(of_word=lambda M, v: v @ M),
        ],
        "a matrix before x is for one word, which stands in a column. The words of a "
        "batch stand in rows.": [
            _gru(of_word=lambda M, v: M @ v, of_state=lambda M, v: M @ v)
        ],
        "the sentences are cut in three, and not the gates. Along which axis do the "
        "gates stand after the product?": [_batch_cut(0)],
        "the matrices are cut between their columns. Which axis of W has the length "
        "3H?": [_columns_cut],
        "a part of H numbers meets one of 3H: the bias isn't cut into three.": [
            _whole_bias
        ],
        "⊙ multiplies number by number; @ is the product of matrices.": [
            _gru(
                candidate=lambda read, kept, b, r, h: torch.tanh(read + r @ (kept + b))
            ),
            _gru(new=lambda r, z, n, h, s: (1 - z) @ n + z @ h),
            _gru(
                candidate=lambda read, kept, b, r, h: torch.tanh(read + r @ (kept + b)),
                new=lambda r, z, n, h, s: (1 - z) @ n + z @ h,
            ),
        ],
        "the gates' numbers don't alternate. They stand in blocks: first H numbers of "
        "r, then H of z, then H of n.": [_every_third],
        "each sentence is a column. Batch first is asked for: (B, H).": [_by_columns],
        "a product such as W @ x.T has a column for each sentence; b and h have "
        "rows.": [
            _columns_without_bias_axis,
            _columns_meet_rows,
        ],
    },
    gradients=True,
    unwrap=_with_seed,
)


def shifted_by_loops(ids):
    """The ids of a sentence -> (what the decoder reads, what it should write)."""
    reads, writes = [1], []
    for word in ids:
        reads.append(word)
        writes.append(word)
    return reads, [*writes, 2]


shift = Exercise(
    "shift",
    shifted_by_loops,
    cases=[([5, 6, 7],), ([8, 4, 9],), ([4],), ([11, 5, 5, 9, 30],)],
    mistakes={
        "both are equal: at each position, the decoder reads the very word that it "
        "should write. It must read the word before.": [
            lambda ids: ([1, *ids, 2], [1, *ids, 2]),
            lambda ids: ([1, *ids], [1, *ids]),
            lambda ids: ([*ids, 2], [*ids, 2]),
            lambda ids: (list(ids), list(ids)),
        ],
        "the two are exchanged: <bos> is read, <eos> is written.": [
            lambda ids: ([*ids, 2], [1, *ids])
        ],
        "the decoder reads <eos>. After <eos> there is nothing to write, so it is "
        "never read.": [lambda ids: ([1, *ids, 2], [*ids, 2])],
        "<bos> is among the words to write. Nobody asks the decoder to write it.": [
            lambda ids: ([1, *ids], [1, *ids, 2])
        ],
        "<eos> is missing: a decoder that never learns to write it never ends.": [
            lambda ids: ([1, *ids], list(ids)),
            lambda ids: ([1, *ids[:-1]], list(ids)),
        ],
        "<bos> is missing: at the first step there is nothing to read.": [
            lambda ids: (list(ids), [*ids, 2])
        ],
        "<bos> is missing: the first word is read, and never written.": [
            lambda ids: (list(ids), [*ids[1:], 2])
        ],
        "<bos> and <eos> are missing: the ids are the words alone. With both of them "
        "around "
        "the words, these two parts would be right.": [lambda ids: (ids[:-1], ids[1:])],
        "shifted twice: what is written runs two words ahead of what is read.": [
            lambda ids: ([1, *ids], [*ids[1:], 2])
        ],
        "<bos> is 1 and <eos> is 2.": [
            lambda ids: ([2, *ids], [*ids, 1]),
            lambda ids: ([0, *ids], [*ids, 1]),
        ],
        "<bos> stands before the words, and <eos> after them.": [
            lambda ids: ([*ids, 1], [2, *ids])
        ],
        "append, insert and extend change a list, and return None. What makes a new "
        "list of two?": [
            lambda ids: ([1, *ids], None),
            lambda ids: (None, [*ids, 2]),
            lambda ids: (None, [1, *ids, 2]),
            lambda ids: (None, None),
        ],
        "two lists are asked for: what is read, and what is written.": [
            lambda ids: [1, *ids, 2],
            lambda ids: list(zip([1, *ids], [*ids, 2], strict=True)),
            lambda ids: {"reads": [1, *ids], "writes": [*ids, 2]},
        ],
        "a number is added to each id. What makes a list longer by one id?": [
            lambda ids: ([1, *ids], [i + 1 for i in ids]),
            lambda ids: ([1, *ids], [*(i + 1 for i in ids), 2]),
            lambda ids: ([i + 1 for i in ids], [i + 2 for i in ids]),
            lambda ids: (torch.tensor(ids) + 1, torch.tensor(ids) + 2),
        ],
        "a list and a number can't be added. Which list holds the number alone?": [
            lambda ids: (1 + ids, ids + 2),
            lambda ids: ([1, *ids], ids + 2),
        ],
        "a list stands within a list. The ids are to stand side by side.": [
            lambda ids: ([1, ids], [ids, 2]),
            lambda ids: ([[1], ids], [ids, [2]]),
        ],
        "numbers are asked for, and not the marks' names.": [
            lambda ids: (["<bos>", *ids], [*ids, "<eos>"])
        ],
        "the words are read backwards. Reads and writes have the same order.": [
            lambda ids: ([1, *ids[::-1]], [*ids, 2]),
        ],
        "padding is added. Both lists are equally long already.": [
            lambda ids: ([1, *ids, 0], [*ids, 2, 0]),
        ],
    },
)


def last_states_by_loops(outputs, valid_lens):
    """Outputs (B, S, H) and lengths (B,) -> each sentence's last state (B, H)."""
    rows = []
    for b in range(len(outputs)):
        state = None
        for j in range(int(valid_lens[b])):
            state = outputs[b, j]
        rows.append(state)
    return torch.stack(rows)


def _case(seed, lens, S, H):
    return *draw(seed, (len(lens), S, H)), torch.tensor(lens)


def _at(outputs, positions):
    return outputs[torch.arange(len(outputs)), positions]


def _words_alone(outputs, lens):
    """The outputs, 0 at padding."""
    return outputs * real_positions(lens, outputs.shape[1]).unsqueeze(-1)


last_states = Exercise(
    "last_states",
    last_states_by_loops,
    cases=[
        _case(0, [5, 3, 1], 6, 4),
        _case(1, [5, 2, 4], 6, 4),
        _case(2, [3, 2], 4, 5),
        _case(3, [4], 5, 3),
        _case(4, [2, 4, 3, 4], 4, 4),
    ],
    mistakes={
        "this is the last position. In a shorter sentence padding stands there, and "
        "not a word: "
        "which position holds the last word?": [lambda outputs, lens: outputs[:, -1]],
        "this is the last sentence of the batch: the first axis is the batch.": [
            lambda outputs, lens: outputs[-1],
            lambda outputs, lens: outputs[-1, lens - 1],
        ],
        "padding was made 0, and then the last position was taken, which holds padding "
        "in most sentences. Which position holds the last word?": [
            lambda outputs, lens: _words_alone(outputs, lens)[:, -1]
        ],
        "the lengths choose among the numbers of a state: the last axis is H. Which "
        "axis counts positions?": [
            lambda outputs, lens: outputs[torch.arange(len(lens)), :, lens - 1],
            lambda outputs, lens: outputs[..., lens - 1],
        ],
        "a slice, int() and .item() want one number, and there are B lengths: each "
        "sentence has its own.": [
            lambda outputs, lens: outputs[:, : lens - 1],
            lambda outputs, lens: outputs[:, :lens][:, -1],
        ],
        "these are the states of all words, and sentences of other lengths can't be "
        "stacked. One state of each is asked for.": [
            lambda outputs, lens: torch.stack(
                [row[:n] for row, n in zip(outputs, lens, strict=True)]
            )
        ],
        "arange counts positions here. It is to count sentences: a length belongs to "
        "each.": [
            lambda outputs, lens: outputs[torch.arange(outputs.shape[1]), lens - 1]
        ],
        "the lengths choose sentences: the first axis is the batch. Which axis counts "
        "positions?": [
            lambda outputs, lens: outputs[lens - 1],
            lambda outputs, lens: outputs[lens - 1][:, -1],
            lambda outputs, lens: _at(outputs.transpose(0, 1), lens - 1),
            lambda outputs, lens: outputs[lens - 1, torch.arange(len(outputs))],
        ],
        "positions are counted from the end: a minus before the length.": [
            lambda outputs, lens: _at(outputs, -lens)
        ],
        "gather returns as many numbers as its index has: it must be expanded over "
        "H.": [
            lambda outputs, lens: outputs.gather(1, (lens - 1)[:, None, None]),
            lambda outputs, lens: outputs.gather(1, (lens - 1)[:, None, None]).squeeze(
                1
            ),
            lambda outputs, lens: outputs.gather(
                1, (lens - 1)[:, None, None]
            ).squeeze(),
        ],
        "gather needs an index with as many axes as outputs has.": [
            lambda outputs, lens: outputs.gather(1, (lens - 1)[:, None]),
            lambda outputs, lens: outputs.gather(1, lens - 1),
        ],
        "one position too far: a sentence of 3 words has its last one at 2.": [
            lambda outputs, lens: _at(outputs, lens.clamp(max=outputs.shape[1] - 1)),
            lambda outputs, lens: _at(outputs, lens),
        ],
        "one position too early.": [lambda outputs, lens: _at(outputs, lens - 2)],
        "this is the state at the first word.": [lambda outputs, lens: outputs[:, 0]],
        "the first sentence's length is used for all.": [
            lambda outputs, lens: outputs[:, lens[0] - 1]
        ],
        "the longest sentence's length is used for all.": [
            lambda outputs, lens: outputs[:, lens.max() - 1]
        ],
        "the shortest sentence's length is used for all.": [
            lambda outputs, lens: outputs[:, lens.min() - 1]
        ],
        "indexing with `:` pairs every sentence with every length. Pair sentence b "
        "with its "
        "own: torch.arange(B) in front.": [lambda outputs, lens: outputs[:, lens - 1]],
        "this is the mean over all positions.": [lambda outputs, lens: outputs.mean(1)],
        "this is the maximum over positions.": [lambda outputs, lens: outputs.amax(1)],
        "this is the sum over all positions.": [lambda outputs, lens: outputs.sum(1)],
        "all words have a part in this. The last word's state alone is asked for.": [
            lambda outputs, lens: _words_alone(outputs, lens).sum(1),
            lambda outputs, lens: _words_alone(outputs, lens).sum(1) / lens[:, None],
        ],
    },
    gradients=True,
)


def sentence_logs_by_loops(logits, targets):
    """Logits (B, T, V), ids (B, T), 0 for padding -> each sentence's log p (B,)."""
    rows = []
    for b in range(len(targets)):
        total = torch.zeros(())
        for i in range(targets.shape[1]):
            if targets[b, i] != 0:
                chances = logits[b, i].exp() / logits[b, i].exp().sum()
                total = total + chances[targets[b, i]].log()
        rows.append(total)
    return torch.stack(rows)


def _picked(logits, targets, normalise=lambda logits: logits.log_softmax(-1)):
    """The number of each target word, (B, T)."""
    return normalise(logits).gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def _real(logits, targets, normalise=lambda logits: logits.log_softmax(-1)):
    """The same, 0 at padding."""
    return _picked(logits, targets, normalise).masked_fill(targets == 0, 0)


def _without_end(logits, targets):
    return _real(logits, targets.masked_fill(targets == 2, 0)).sum(1)


def _log_case(seed, targets, V):
    return *draw(seed, (len(targets), len(targets[0]), V)), torch.tensor(targets)


sentence_log_probability = Exercise(
    "sentence_log_probability",
    sentence_logs_by_loops,
    cases=[
        _log_case(0, [[4, 3, 2], [5, 2, 0]], 6),
        _log_case(1, [[3, 2, 0], [3, 5, 2]], 6),
        _log_case(2, [[6, 4, 2, 0], [2, 0, 0, 0], [4, 5, 6, 2]], 7),
        tuple(
            part.abs() for part in _log_case(3, [[4, 7, 5, 3, 2], [6, 2, 0, 0, 0]], 8)
        ),
        _log_case(4, [[3, 3, 3, 2], [3, 2, 0, 0], [1, 3, 2, 0], [2, 0, 0, 0]], 4),
        _log_case(5, [20 * [5, 3, 4, 6] + [2], [4, 6, 2] + 78 * [0]], 9),
    ],
    mistakes={
        "padding is counted. Which positions have no word?": [
            lambda logits, targets: _picked(logits, targets).sum(1),
            lambda logits, targets: (
                -F.cross_entropy(logits.transpose(1, 2), targets, reduction="none").sum(
                    1
                )
            ),
        ],
        "this is the mean over the words. The logs of all factors are added.": [
            lambda logits, targets: (
                _real(logits, targets).sum(1) / (targets != 0).sum(1)
            ),
        ],
        "this is the mean over all positions. The logs of all factors are added.": [
            lambda logits, targets: _real(logits, targets).mean(1),
            lambda logits, targets: _picked(logits, targets).mean(1),
        ],
        "this is one number for the whole batch. Each sentence has its own.": [
            lambda logits, targets: _real(logits, targets).sum(),
            lambda logits, targets: _picked(logits, targets)[targets != 0].mean(),
            lambda logits, targets: _picked(logits, targets).sum(),
            lambda logits, targets: _picked(logits, targets).mean(),
            lambda logits, targets: F.cross_entropy(
                logits.transpose(1, 2), targets, ignore_index=0
            ),
            lambda logits, targets: F.cross_entropy(logits.transpose(1, 2), targets),
            lambda logits, targets: F.cross_entropy(
                logits.flatten(0, 1), targets.flatten()
            ),
            lambda logits, targets: F.cross_entropy(
                logits.flatten(0, 1), targets.flatten(), reduction="sum"
            ),
            lambda logits, targets: F.cross_entropy(
                logits.flatten(0, 1), targets.flatten(), ignore_index=0
            ),
            lambda logits, targets: -_real(logits, targets).sum(),
        ],
        "the sign is wrong: the log of a number below 1 is negative. With a minus "
        "before it, this is a loss.": [
            lambda logits, targets: -_real(logits, targets).sum(1)
        ],
        "the sign is wrong, and padding is counted.": [
            lambda logits, targets: -_picked(logits, targets).sum(1)
        ],
        "the product of a long sentence's probabilities gets too small for a computer: "
        "0, whose log is −∞. The logs come first, then the sum.": [
            lambda logits, targets: _real(logits, targets).exp().prod(1).log()
        ],
        "only padding is counted. Where is the mask to be true?": [
            lambda logits, targets: (_picked(logits, targets) * (targets == 0)).sum(1)
        ],
        "id 0 is taken out of the vocabulary before the softmax. It is the *positions* "
        "of padding that aren't counted.": [
            lambda logits, targets: _real(
                logits,
                targets,
                lambda x: F.pad(x[..., 1:], (1, 0), value=-torch.inf).log_softmax(-1),
            ).sum(1)
        ],
        "a softmax is taken of probabilities: log_softmax wants the logits.": [
            lambda logits, targets: _real(
                logits, targets, lambda x: x.softmax(-1).log_softmax(-1)
            ).sum(1)
        ],
        "sizes are kept, and what belongs together isn't: view and reshape don't "
        "exchange axes.": [
            lambda logits, targets: (
                -F.cross_entropy(
                    logits.reshape(len(logits), -1, logits.shape[1]),
                    targets,
                    reduction="none",
                    ignore_index=0,
                ).sum(1)
            )
        ],
        "this is the probability itself. Its log is asked for.": [
            lambda logits, targets: _real(logits, targets).sum(1).exp(),
            lambda logits, targets: _picked(logits, targets).sum(1).exp(),
        ],
        "the probabilities are added. They are multiplied: their logs are added.": [
            lambda logits, targets: (
                _picked(logits, targets, lambda x: x.softmax(-1)) * (targets != 0)
            ).sum(1),
            lambda logits, targets: _picked(
                logits, targets, lambda x: x.softmax(-1)
            ).sum(1),
        ],
        "this is the log of a sum of probabilities. The logs come first, then the "
        "sum.": [
            lambda logits, targets: (
                (_picked(logits, targets, lambda x: x.softmax(-1)) * (targets != 0))
                .sum(1)
                .log()
            ),
        ],
        "this is the log of a sum of probabilities, padding counted. The logs come "
        "first, then the sum.": [
            lambda logits, targets: (
                _picked(logits, targets, lambda x: x.softmax(-1)).sum(1).log()
            ),
        ],
        "padding was given the probability 0, and the log of 0 is −∞. Which factor "
        "changes nothing in a product, and which number nothing in a sum?": [
            lambda logits, targets: (
                _real(logits, targets, lambda x: x.softmax(-1)).log().sum(1)
            ),
            lambda logits, targets: (
                _picked(logits, targets).masked_fill(targets == 0, -torch.inf).sum(1)
            ),
        ],
        "the logits of padding were made −∞, and a softmax over nothing but −∞ is 0/0. "
        "When is padding to be left out?": [
            lambda logits, targets: _picked(
                logits.masked_fill((targets == 0).unsqueeze(-1), -torch.inf), targets
            ).sum(1),
        ],
        "the logits of padding were made 0, and a softmax over equal logits gives each "
        "word 1/V. When is padding to be left out?": [
            lambda logits, targets: _picked(
                logits * (targets != 0).unsqueeze(-1), targets
            ).sum(1),
        ],
        "the probabilities are made by sigmoid, each for itself. Those of all words "
        "must add up to 1.": [
            lambda logits, targets: _real(
                logits, targets, lambda x: x.sigmoid().log()
            ).sum(1),
            lambda logits, targets: _picked(
                logits, targets, lambda x: x.sigmoid().log()
            ).sum(1),
        ],
        "a mask in brackets runs the words of all sentences together into one list. "
        "Which number, put at padding, changes no sum?": [
            lambda logits, targets: _picked(logits, targets)[targets != 0],
            lambda logits, targets: (
                _picked(logits, targets)[targets != 0].view(len(targets), -1).sum(1)
            ),
        ],
        "the index of gather is (B, 1, T): all targets are looked up at the first "
        "position. Each position has its own: (B, T, 1).": [
            lambda logits, targets: (
                logits.log_softmax(-1).gather(-1, targets.unsqueeze(1)).sum(1)
            ),
            lambda logits, targets: (
                logits.log_softmax(-1).gather(-1, targets.unsqueeze(1)).sum((1, 2))
            ),
            lambda logits, targets: (
                logits.log_softmax(-1).gather(-1, targets.unsqueeze(1)).squeeze(1)
                * (targets != 0)
            ).sum(1),
        ],
        "gather runs along the positions. The words of the vocabulary are on the last "
        "axis.": [
            lambda logits, targets: (
                logits.log_softmax(-1).gather(1, targets.unsqueeze(-1)).sum((1, 2))
            ),
        ],
        "a log is taken of a log: log_softmax gives logs already.": [
            lambda logits, targets: (
                _picked(logits, targets).log().masked_fill(targets == 0, 0)
            ).sum(1),
            lambda logits, targets: _picked(logits, targets).log().sum(1),
        ],
        "the logits are added without a softmax. What makes probabilities of them?": [
            lambda logits, targets: _real(
                logits, targets, lambda x: x - x.amax(-1, keepdim=True)
            ).sum(1),
            lambda logits, targets: _real(logits, targets, lambda x: x).sum(1),
            lambda logits, targets: _picked(logits, targets, lambda x: x).sum(1),
        ],
        "these are logs of the logits, which may be negative. What makes probabilities "
        "of logits?": [
            lambda logits, targets: _real(logits, targets, torch.log).sum(1),
            lambda logits, targets: _picked(logits, targets, torch.log).sum(1),
        ],
        "the softmax runs over the positions. Over which axis do the probabilities of "
        "the next word add up to 1?": [
            lambda logits, targets: _real(
                logits, targets, lambda x: x.flatten(1).log_softmax(-1).view_as(x)
            ).sum(1),
            lambda logits, targets: _real(
                logits, targets, lambda x: x.log_softmax(1)
            ).sum(1),
            lambda logits, targets: _picked(
                logits, targets, lambda x: x.log_softmax(1)
            ).sum(1),
        ],
        "the softmax runs over the sentences of the batch. Over which axis do the "
        "probabilities of the next word add up to 1?": [
            lambda logits, targets: _real(
                logits, targets, lambda x: x.log_softmax(0)
            ).sum(1),
            lambda logits, targets: _picked(
                logits, targets, lambda x: x.log_softmax(0)
            ).sum(1),
        ],
        "the most probable words are taken, and not the sentence's own.": [
            lambda logits, targets: logits.log_softmax(-1).amax(-1).sum(1),
            lambda logits, targets: (
                logits.log_softmax(-1).amax(-1) * (targets != 0)
            ).sum(1),
        ],
        "all words of the vocabulary are added up. One word stands at each position: "
        "which?": [
            lambda logits, targets: logits.log_softmax(-1).sum((1, 2)),
            lambda logits, targets: (
                logits.log_softmax(-1) * (targets != 0).unsqueeze(-1)
            ).sum((1, 2)),
        ],
        "the words of each position still stand apart: (B, T). What joins the factors "
        "of a sentence?": [
            _real,
            _picked,
            lambda logits, targets: (
                -F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
            ),
            lambda logits, targets: (
                -F.cross_entropy(
                    logits.transpose(1, 2), targets, reduction="none", ignore_index=0
                )
            ),
            lambda logits, targets: (
                logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).sum(-1)
            ),
        ],
        "the sum runs over the sentences of the batch. Which axis counts the words of "
        "one sentence?": [
            lambda logits, targets: _real(logits, targets).sum(0),
            lambda logits, targets: _picked(logits, targets).sum(0),
        ],
        "<eos> is left out. It is a factor like the others: the sentence must end "
        "here.": [
            _without_end,
            lambda logits, targets: (_picked(logits, targets) * (targets > 2)).sum(1),
            lambda logits, targets: (_picked(logits, targets) * (targets > 3)).sum(1),
        ],
        "the first word is left out: logits and targets are at the same place already, "
        "and need no further shift.": [
            lambda logits, targets: _real(logits[:, :-1], targets[:, 1:]).sum(1),
            lambda logits, targets: _real(logits[:, 1:], targets[:, 1:]).sum(1),
        ],
        "the last position is left out.": [
            lambda logits, targets: _real(logits[:, :-1], targets[:, :-1]).sum(1)
        ],
        "this is the last word's log alone. Every word is a factor.": [
            lambda logits, targets: _real(logits, targets)[:, -1],
            lambda logits, targets: _picked(logits, targets)[:, -1],
        ],
        "gather needs an index with as many axes as the numbers that it picks from. "
        "How many has targets?": [
            lambda logits, targets: logits.log_softmax(-1).gather(-1, targets),
            lambda logits, targets: logits.gather(2, targets),
        ],
        "gather leaves an axis of length 1 at the end, and that axis meets the mask's "
        "positions.": [
            lambda logits, targets: (
                logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1))
                * (targets != 0)
            ).sum(-1),
            lambda logits, targets: (
                logits.log_softmax(-1)
                .gather(-1, targets.unsqueeze(-1))
                .masked_fill(targets == 0, 0)
                .sum(1)
            ),
            lambda logits, targets: (
                logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1))
                * (targets != 0)
            ).sum(1),
            lambda logits, targets: (
                logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1))
                * (targets != 0)
            ).sum((1, 2)),
        ],
        "the sum leaves the last axis, of length 1, behind: (B, 1). Who takes it "
        "away?": [
            lambda logits, targets: _real(logits, targets).unsqueeze(-1).sum(1),
            lambda logits, targets: _picked(logits, targets).unsqueeze(-1).sum(1),
            lambda logits, targets: _real(logits, targets).sum(1, keepdim=True),
        ],
        "`:` pairs every position with every target. Each position has one target: the "
        "indices must be paired.": [
            lambda logits, targets: logits.log_softmax(-1)[:, :, targets],
            lambda logits, targets: logits.log_softmax(-1)[:, :, targets].sum(1),
            lambda logits, targets: (
                logits.log_softmax(-1)[:, torch.arange(targets.shape[1]), targets]
                * (targets != 0)
            ).sum(1),
            lambda logits, targets: logits.log_softmax(-1)[..., targets].sum(-1),
            lambda logits, targets: logits.log_softmax(-1)[
                :, torch.arange(targets.shape[1]), targets
            ],
            lambda logits, targets: logits.log_softmax(-1)[
                :, torch.arange(targets.shape[1]), targets
            ].sum(1),
            lambda logits, targets: logits.log_softmax(-1)[
                :, torch.arange(targets.shape[1]), targets
            ].sum(-1),
        ],
        "three index tensors pair up only if their shapes fit: sentences must stand in "
        "a column, (B, 1), beside positions, (T,).": [
            lambda logits, targets: (
                logits.log_softmax(-1)[
                    torch.arange(targets.shape[0]),
                    torch.arange(targets.shape[1]),
                    targets,
                ]
                * (targets != 0)
            ).sum(1),
            lambda logits, targets: logits.log_softmax(-1)[
                torch.arange(targets.shape[0]), torch.arange(targets.shape[1]), targets
            ].sum(1),
        ],
        "the targets are used as numbers of sentences. They are numbers of words, on "
        "the last axis.": [
            lambda logits, targets: logits.log_softmax(-1)[targets],
            lambda logits, targets: logits[targets],
        ],
        "cross_entropy and nll_loss want the words on axis 1, behind the batch.": [
            lambda logits, targets: F.nll_loss(logits.log_softmax(-1), targets),
            lambda logits, targets: F.cross_entropy(logits, targets),
            lambda logits, targets: F.cross_entropy(
                logits, targets, ignore_index=0, reduction="none"
            ),
            lambda logits, targets: F.cross_entropy(logits, targets, ignore_index=0),
            lambda logits, targets: F.cross_entropy(logits, targets, reduction="none"),
        ],
    },
    gradients=True,
)
