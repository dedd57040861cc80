"""The exercises of notebook 02. B sentences, S source and T target positions."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from utils.exercises.engine import Exercise
from utils.exercises.inputs import case, draw, seeded

PACKING = {
    "pack_padded_sequence": pack_padded_sequence,
    "pad_packed_sequence": pad_packed_sequence,
}


def _read(encoder, V, E, H, ids, lens):
    """What an encoder of these sizes returns; its parts get numbers of the check."""
    model = encoder(V, E, H)
    if any(part is ... for part in vars(model).values()):
        return ...
    for part in model.modules():
        if isinstance(part, nn.Embedding | nn.GRU):
            for n, weight in enumerate(part.parameters()):
                weight.data = draw(n, weight.shape)[0]
    return model(ids, lens)


def _ids(*rows):
    return torch.tensor(rows), torch.tensor([sum(map(bool, row)) for row in rows])


encoder = Exercise(
    "encoder",
    """
class Encoder(nn.Module):
    def __init__(self, vocab_size, embed_size, num_hiddens):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.rnn = nn.GRU(embed_size, num_hiddens, batch_first=True)

    def forward(self, ids, lens):  # (B, S), (B,) -> (B, S, H), (1, B, H)
        S, x = ids.shape[1], self.embedding(ids)  # x: (B, S, E)
        packed = pack_padded_sequence(x, lens, batch_first=True, enforce_sorted=False)
        packed, state = self.rnn(packed)  # state: (1, B, H)
        outputs, _ = pad_packed_sequence(packed, batch_first=True, total_length=S)
        return outputs, state
""",
    {
        "Two things are asked for: the outputs (B, S, H), a state for each word, and "
        "the last states (1, B, H), both as the GRU gives them. There is no padding "
        "here.": [
            (9, 3, 4, *_ids([5, 6, 7, 8, 2], [4, 6, 8, 4, 2])),
            (7, 4, 5, *_ids([5, 6, 2])),
        ],
        "Here one sentence is shorter. Its last state is the one after its last word, "
        "and its outputs at padding are 0.": [
            (8, 3, 5, *_ids([5, 6, 7, 2], [4, 2, 0, 0], [2, 0, 0, 0])),
        ],
        "Here the longest sentence isn't the first.": [
            (8, 2, 3, *_ids([4, 2, 0, 0], [5, 6, 7, 2], [6, 6, 2, 0])),
        ],
        "This batch is wider than its longest sentence. The outputs are as wide as the "
        "ids.": [
            (9, 5, 2, *_ids([7, 3, 2, 0, 0], [6, 2, 0, 0, 0], [8, 2, 0, 0, 0])),
            (5, 5, 5, *_ids(*5 * [[4, 2, 0, 0, 0]])),
        ],
    },
    """
The GRU reads the padding, too. Give it the packed batch, and not the vectors.
    (x, lens, => (x, lens * 0 + S,
The lengths may come in any order. Which argument of pack_padded_sequence says so?
    , enforce_sorted=False =>
Packing takes (S, B, E), and unpacking gives (S, B, H), unless batch_first=True.
    lens, batch_first=True => lens
    packed, batch_first=True => packed
Here the ids are wider than each sentence. Which argument of unpacking says how wide?
    , total_length=S =>
The two are exchanged: first the outputs, then the last states.
    return outputs, state => return state, outputs
The last states have an axis of layers in front: (1, B, H), as nn.GRU gives them.
    return outputs, state => return outputs, state[-1]
The last position holds a sentence's last word only where there is no padding.
    return outputs, state => return outputs, outputs[:, -1].unsqueeze(0)
nn.Embedding(words, size of a vector); nn.GRU(size of what it reads, size of its state).
    nn.Embedding(vocab_size, embed_size) => nn.Embedding(embed_size, vocab_size)
    nn.GRU(embed_size, num_hiddens => nn.GRU(num_hiddens, embed_size
""",
    unwrap=_read,
    names=PACKING,
)


def _unrolling(seed, B, T, C, E, H):
    gru = seeded(seed, nn.GRU, C + E, H, batch_first=True).requires_grad_(False)
    context, embedded, state = draw(seed, (B, C), (B, T, E), (1, B, H))
    return context, embedded, gru, state


unroll = Exercise(
    "unroll",
    """
def all_steps(context, embedded, rnn, state):  # (B, C), (B, T, E) -> (B, T, H)
    T = embedded.shape[1]
    contexts = context.unsqueeze(1).expand(-1, T, -1)  # (B, T, C)
    inputs = torch.cat((contexts, embedded), dim=-1)  # (B, T, C + E)
    return rnn(inputs, state)  # (B, T, H), (1, B, H)
""",
    {
        "At each step the GRU reads the context and a word, side by side, the context "
        "first. It begins with `state`. What the GRU returns is asked for.": [
            _unrolling(0, 2, 3, 4, 5, 6),
            _unrolling(1, 3, 4, 2, 3, 5),
        ],
        "Here are other sizes. Is one written into your code, or squeezed away?": [
            _unrolling(2, 1, 5, 3, 4, 2),
            _unrolling(3, 3, 1, 6, 2, 4),
            _unrolling(4, 4, 4, 4, 4, 4),
        ],
    },
    """
The word comes first in your inputs. The GRU's left columns belong to the context.
    (contexts, embedded) => (embedded, contexts)
Side by side means along the last axis. Here one side follows the other in time.
    dim=-1) => dim=1)
The context has no axis of time. Where does it need one, and how long?
    .unsqueeze(1).expand(-1, T, -1) =>
The context has one step, and there are T. What repeats it?
    .expand(-1, T, -1) =>
The GRU gets (B, C + E). A step keeps an axis of time, of length 1: (B, 1, C + E).
    rnn(inputs, state) => rnn(inputs[:, 0], state)
    rnn(inputs, state) => rnn(inputs[:, 0], state[0])
The GRU begins with zeros here. Who has its first state?
    rnn(inputs, state) => rnn(inputs)
The two are exchanged: first the states at all steps, then the last one.
    rnn(inputs, state) => rnn(inputs, state)[::-1]
""",
    gradients=True,
)

last_states = Exercise(
    "last_states",
    """
def context_at_the_last_word(outputs, valid_lens):  # (B, S, H), (B,) -> (B, H)
    rows = torch.arange(len(outputs))
    return outputs[rows, valid_lens - 1]
""",
    {
        "A sentence of length n has its words at the positions 0 to n - 1, and padding "
        "after them. The state at its last word is asked for.": [
            case(0, [5, 3, 1], 3, 6, 4),
            case(1, [5, 2, 4], 3, 6, 4),
            case(2, [3, 2], 2, 4, 5),
            case(3, [4], 1, 5, 3),
            case(4, [2, 4, 3, 4], 4, 4, 4),
        ]
    },
    """
This is the last position. Where a length is below S, padding stands there, and no word.
    [rows, valid_lens - 1] => [:, -1]
`:` pairs each sentence with each length. How does a sentence get its own?
    [rows, valid_lens - 1] => [:, valid_lens - 1]
This is one position too far: a sentence of 3 words has its last one at 2.
    valid_lens - 1 => valid_lens
The lengths choose sentences: the first axis is B. Which axis counts positions?
    [rows, valid_lens - 1] => [valid_lens - 1]
gather returns as many numbers as its index has. How does the index get an axis of H?
    => return outputs.gather(1, (valid_lens - 1)[:, None, None]).squeeze(1)
""",
    gradients=True,
)
