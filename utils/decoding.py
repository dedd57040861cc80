"""Decoding: from a trained model to a translation.

Letters in shape comments: B sentences in a batch, S source and T target positions,
V words in the target vocabulary; N hypotheses, or beginnings of translations, of a
batch. A model is left in eval mode.
"""

from typing import NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

from utils.data import cut, pad
from utils.guards import require_whole
from utils.models import require_fit
from utils.text import BOS_ID, EOS, EOS_ID, PAD_ID, check_tokens

MAX_SOURCE = 200  # pieces or words; the course's longest test sentence has 60


@torch.no_grad()
def greedy_decode(model, source, source_lens, max_steps=None):
    """The most probable word at each step, until every sentence has ended.

    source (B, S) ids, source_lens (B,) -> ids (B, T), PAD after each <eos>, and the
    weights (B, T, S), 0 after it, or None for a decoder without attention. max_steps:
    the cap on T, 2S + 10 when None; a sentence cut by it has no <eos>.
    """
    model.eval()
    state = model.decoder.init_state(model.encoder(source, source_lens), source_lens)
    rows = torch.arange(len(source))  # the sentences that haven't ended
    word = torch.full((len(source), 1), BOS_ID)
    ids, weights = [], []
    for _ in range(step_limit(source, max_steps)):
        logits, state = model.decoder(word, state)  # one step: (rows, 1, V)
        word = writable(logits).argmax(dim=-1)  # (rows, 1)
        step = torch.full((len(source),), PAD_ID)
        ids.append(step.index_copy(0, rows, word[:, 0]))
        seen = getattr(state, "attention_weights", None)  # (rows, 1, S), this call's
        if seen is not None:
            step = seen.new_zeros(source.shape)
            weights.append(step.index_copy(0, rows, seen[:, 0]))
        going = (word[:, 0] != EOS_ID).nonzero()[:, 0]
        if len(going) == 0:
            break
        if len(going) < len(rows):  # what has ended costs nothing from here on
            rows, word, state = rows[going], word[going], select_rows(state, going)
    return torch.stack(ids, 1), torch.stack(weights, 1) if weights else None


def step_limit(source, max_steps=None):
    """How many words a translation of source (B, S) may have: 2S + 10 when None."""
    if max_steps is None:
        return 2 * source.shape[1] + 10
    require_whole("max_steps", max_steps)
    return max_steps


def writable(logits):
    """Logits or log-probabilities (..., V) by which <pad> and <bos> are never best.

    Raises ValueError when nothing is best, as after a training that diverged.
    """
    logits = logits.index_fill(-1, torch.tensor([PAD_ID, BOS_ID]), -torch.inf)
    if not logits.amax(dim=-1).isfinite().all():
        raise ValueError(
            "the best logits of the next word are NaN or infinite: the training went "
            "wrong. Train the model anew at a lower rate, or load an earlier file"
        )
    return logits


class Beam(NamedTuple):
    """`beam_size` hypotheses a sentence, side by side: N = B * beam_size rows."""

    ids: torch.Tensor  # (N, 1 + t): <bos>, then t words; PAD after <eos>
    log_probs: torch.Tensor  # (N,): the sum over the words, in nats
    lengths: torch.Tensor  # (N,): the number of words, <eos> included
    ended: torch.Tensor  # (N,): whether <eos> was written
    weights: torch.Tensor | None  # (N, t, S); None without attention


def select_rows(state, rows):
    """Rows of a decoder's state, or of a Beam, by number; a row may come twice.

    A state is a NamedTuple of tensors. The batch is axis 0 of each, but axis 1 of
    `hidden_state`, (L, B, H), as in PyTorch's recurrent layers. None stays None.
    """
    chosen = {
        name: tensor.index_select(int(name == "hidden_state"), rows)
        for name, tensor in state._asdict().items()
        if tensor is not None
    }
    return state._replace(**chosen)


def extend_beam(beam, steps, weights, beam_size, length_penalty=0.0):
    """The best continuations by one word -> the new Beam, the rows they come from.

    steps: log-probabilities of the next word (N, V); weights (N, 1, S) or None. Ranked
    by log_probs / lengths ** length_penalty, the best first. A hypothesis that has
    ended competes as it is: PAD continues it, at no cost.
    """
    K = min(beam_size, steps.shape[1])  # a hypothesis gives its best K continuations
    steps, words = steps.topk(K)  # (N, K)
    only_pad = torch.tensor([0.0] + [-torch.inf] * (K - 1))
    steps = torch.where(beam.ended.unsqueeze(1), only_pad, steps)
    words = words.masked_fill(beam.ended.unsqueeze(1), PAD_ID)
    log_probs = beam.log_probs.unsqueeze(1) + steps  # (N, K), summed in double
    lengths = beam.lengths + ~beam.ended
    scores = log_probs / lengths.unsqueeze(1) ** length_penalty
    best = scores.view(-1, beam_size * K).topk(beam_size).indices  # (B, beam_size)
    first_rows = torch.arange(0, len(steps), beam_size).unsqueeze(1)
    rows, nth = (first_rows + best // K).flatten(), best.flatten() % K
    words = words[rows, nth].unsqueeze(1)
    ids = torch.cat((beam.ids[rows], words), dim=1)
    ended = beam.ended[rows] | (words[:, 0] == EOS_ID)
    if weights is not None:
        seen = [] if beam.weights is None else [beam.weights]
        weights = torch.cat([*seen, weights], dim=1)[rows]
    return Beam(ids, log_probs[rows, nth], lengths[rows], ended, weights), rows


def beam_is_settled(beam, beam_size, max_steps, length_penalty=0.0, n_best=1):
    """(B,): True where no hypothesis can join the n_best of its sentence any more.

    A log-probability only falls, and a length ends at max_steps: that bounds the score.
    """
    scores = beam.log_probs / beam.lengths**length_penalty
    bounds = beam.log_probs / max_steps**length_penalty
    bounds = bounds.masked_fill(beam.ended, -torch.inf).view(-1, beam_size)
    ended = beam.ended.view(-1, beam_size)[:, :n_best].all(dim=1)
    return ended & (bounds.amax(dim=1) <= scores.view(-1, beam_size)[:, n_best - 1])


@torch.no_grad()
def beam_search(
    model, source, source_lens, beam_size, max_steps=None, length_penalty=0.0, n_best=1
):
    """The best translations found when `beam_size` hypotheses are followed at a time.

    source (B, S), source_lens (B,) and max_steps as for `greedy_decode` -> ids (N, T),
    log-probabilities (N,), weights (N, T, S) or None: N = B * n_best, those of a
    sentence side by side, the best first. The best has the highest log-probability /
    length ** length_penalty; its length counts <eos>. 0 ranks by log-probability, 1 by
    its mean over the words. One that max_steps cuts competes as it is. Raises
    ValueError for numbers out of range.
    """
    max_steps = step_limit(source, max_steps)
    check_search(beam_size, length_penalty, n_best)
    model.eval()
    state = model.decoder.init_state(model.encoder(source, source_lens), source_lens)
    sentences = torch.arange(len(source))  # those that aren't settled yet
    rows = sentences.repeat_interleave(beam_size)  # N = B * beam_size
    first = rows.diff(prepend=rows.new_tensor([-1])) > 0  # of N equal ones, one counts
    log_probs = torch.where(first, 0.0, -torch.inf).double()
    beam = Beam(torch.full((len(rows), 1), BOS_ID), log_probs, 0 * rows, rows < 0, None)
    state, found = select_rows(state, rows), {}
    while len(sentences):
        logits, state = model.decoder(beam.ids[:, -1:], state)
        steps = writable(logits.squeeze(1).log_softmax(dim=-1))
        weights = getattr(state, "attention_weights", None)
        beam, rows = extend_beam(beam, steps, weights, beam_size, length_penalty)
        going = ~beam_is_settled(beam, beam_size, max_steps, length_penalty, n_best)
        going &= beam.ids.shape[1] <= max_steps
        for n in (~going).nonzero()[:, 0]:
            best = n * beam_size + torch.arange(n_best)
            found[sentences[n].item()] = select_rows(beam, best)
        sentences, kept = sentences[going], going.repeat_interleave(beam_size)
        state = select_rows(state, rows[kept])
        beam = select_rows(beam, kept.nonzero()[:, 0])
    best = [found[b] for b in range(len(source))]
    ids = pad_sequence([ids[1:] for one in best for ids in one.ids], True, PAD_ID)
    log_probs = torch.cat([one.log_probs for one in best])
    if weights is not None:
        weights = pad_sequence([row for one in best for row in one.weights], True)
    return ids, log_probs, weights


@torch.no_grad()
def exact_search(
    model, source, source_lens, max_rows=20_000, beam_size=5, max_steps=None, part=200
):
    """The most probable of all translations that end, and whether that is certain.

    One sentence: source (1, S), source_lens (1,) -> ids (T,), log-probability, and True
    unless more than max_rows beginnings were followed: then the best found. A beam's
    result, even one that max_steps cuts, is the bound: what is less probable can't
    become better. So for a bound of probability p, fewer than 1 / p beginnings of one
    length are open. The best `part` of them are followed to their ends before the next,
    so that the bound rises soon. (Stahlberg and Byrne, 2019, follow one at a time.)
    """
    ids, log_probs, _ = beam_search(model, source, source_lens, beam_size, max_steps)
    best, bound, seen = ids[0][ids[0] != PAD_ID], log_probs.item(), 0
    state = model.decoder.init_state(model.encoder(source, source_lens), source_lens)
    row = torch.tensor([0])  # of the state, for each open beginning
    todo = [(torch.tensor([[BOS_ID]]), torch.zeros(1).double(), state, row)]
    while todo:
        open_ids, log_probs, state, rows = todo.pop()
        going = log_probs > bound  # the bound may have risen meanwhile
        if open_ids.shape[1] > step_limit(source, max_steps) or not going.any():
            continue
        open_ids, log_probs, rows = open_ids[going], log_probs[going], rows[going]
        seen += len(open_ids)
        if seen > max_rows:
            return best, bound, False
        state = select_rows(state, rows)
        logits, state = model.decoder(open_ids[:, -1:], state)
        steps = writable(logits.squeeze(1).log_softmax(dim=-1))  # (N, V)
        totals = log_probs.unsqueeze(1) + steps
        rows, words = (totals > bound).nonzero(as_tuple=True)
        log_probs, order = totals[rows, words].sort(descending=True)
        rows, words = rows[order], words[order]
        ids = torch.cat((open_ids[rows], words.unsqueeze(1)), dim=1)
        ended = words == EOS_ID
        if ended.any() and log_probs[ended][0] > bound:  # the best of them is first
            best, bound = ids[ended][0, 1:], log_probs[ended][0].item()
        parts = (x[~ended].split(part) for x in (ids, log_probs, rows))
        pieces = [(i, p, state, r) for i, p, r in zip(*parts, strict=True)]
        todo += reversed(pieces)  # the most probable ones come next
    return best, bound, True


def check_search(beam_size, length_penalty, n_best=1):
    """ValueError, in words, unless a search can be run with these numbers."""
    require_whole("beam_size", beam_size)
    require_whole("n_best", n_best)
    if n_best > beam_size:
        raise ValueError(f"n_best is {n_best}, and a beam of {beam_size} has no more")
    if not isinstance(length_penalty, (int, float)) or not 0 <= length_penalty <= 10:
        raise ValueError(
            f"length_penalty must be at least 0 and finite, got {length_penalty!r}: "
            "0 ranks by log-probability, 1 by its mean over the words, 10 is the most"
        )


def require_attention(weights):
    """TypeError, in words, if a decoder gave no attention weights."""
    if weights is None:
        raise TypeError(
            "this shows where a model looks, and this model has no attention: "
            'give another one, as from build_model("attention", ...)'
        )


def require_room(sentence, ids, name):
    """ValueError, in words, unless a sentence has a word, and not too many ids."""
    if not ids or isinstance(sentence, str) and not sentence.strip():
        raise ValueError(f"there is nothing to translate: {name} has no word")
    if len(ids) > MAX_SOURCE:
        raise ValueError(
            f"{name} has {len(ids)} words, or pieces of words, for the model; 1 to "
            f"{MAX_SOURCE} can be translated: split a longer one at its full stops"
        )


class Translation(NamedTuple):
    """One translated sentence. Labels and weights always have matching sizes."""

    text: str  # as a reader wants it
    tokens: list[str]  # ends with <eos>, unless the step limit came first
    source_tokens: list[str]  # ends with <eos>
    attention_weights: torch.Tensor | None  # (len(tokens), len(source_tokens))
    unknown: list[str]  # source words that the vocabulary doesn't have, read as <unk>
    words: list[str]  # what the tokens spell, without <eos>
    log_prob: float | None = None  # of the tokens, in nats; by beam search alone


def translate(
    model,
    text,
    src_vocab,
    tgt_vocab,
    batch_size=256,
    max_steps=None,
    beam_size=1,
    length_penalty=0.0,
    n_best=None,
):
    """Translate a text (str) -> Translation; a list of texts -> a list of them.

    Sentences of like length share a batch; the result is in the order given.
    beam_size: 1 for greedy decoding, more for `beam_search` with this length_penalty.
    n_best: a list of the so many best Translations in place of one, by `beam_search`.
    A word that isn't in the vocabulary is read as <unk> and listed in `unknown`.
    Raises TypeError for what is no text; ValueError for a text without words or of more
    than MAX_SOURCE pieces, vocabularies of another size than the model's, logits that
    are NaN or infinite, options out of range.
    """
    n = 1 if n_best is None else n_best
    require_whole("batch_size", batch_size)
    check_search(beam_size, length_penalty, n)
    require_fit(model, src_vocab, tgt_vocab)
    one = not isinstance(text, (list, tuple))
    texts = [text] if one else text
    sources = list(map(src_vocab.encode, texts))
    for number, (each, source) in enumerate(zip(texts, sources, strict=True)):
        require_room(each, source.ids, f"sentence {number}")
    order = sorted(range(len(sources)), key=lambda i: len(sources[i].ids))
    found, options = {}, (beam_size, max_steps, length_penalty, n)
    with next(model.parameters()).device:  # new tensors are where the model is
        for chosen in cut(order, batch_size):
            batch = pad([[*sources[i].ids, EOS_ID] for i in chosen])
            if beam_size == 1 and n_best is None:
                ids, weights = greedy_decode(model, *batch, max_steps)
                log_probs = [None] * len(ids)
            else:
                ids, log_probs, weights = beam_search(model, *batch, *options)
            weights = [None] * len(ids) if weights is None else weights
            rows = list(zip(ids, log_probs, weights, strict=True))
            for i, own in zip(chosen, cut(rows, n), strict=True):
                found[i] = [_translation(sources[i], tgt_vocab, *row) for row in own]
    results = [found[i] if n_best else found[i][0] for i in range(len(sources))]
    return results[0] if one else results


def translate_tokens(model, sentences, src_vocab, tgt_vocab, **options):
    """`translate`, for sentences that are lists of words -> list of Translation."""
    sentences = list(map(check_tokens, sentences))
    return translate(model, sentences, src_vocab, tgt_vocab, **options)


def _translation(source, tgt_vocab, ids, log_prob, weights):
    ids = ids[ids != PAD_ID].cpu()  # PAD stands after <eos> alone
    tgt_vocab = tgt_vocab.extended(source)
    tokens, source_tokens = tgt_vocab.to_tokens(ids), [*source.tokens, EOS]
    if weights is not None:
        weights = weights[: len(tokens), : len(source_tokens)].cpu()
    text, words = tgt_vocab.decode(ids), tgt_vocab.to_words(ids)
    log_prob = None if log_prob is None else log_prob.item()
    found = text, tokens, source_tokens, weights, source.unknown, words, log_prob
    return Translation(*found)
