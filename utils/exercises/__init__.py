"""Exercises that answer: give one of these your own function, and it says what it does.

`exercises.masked_softmax(mine)` runs `mine` on inputs of its own, prints what it finds
in words, and returns a result that is true if all is right. It is a question, and no
function of the course: that one is `utils.attention.masked_softmax`.

| module | |
|---|---|
| engine | runs an answer, and judges it |
| compare | compares results, and puts the difference into words |
| inputs | what cases are made from |
| start | 00 |
| bottleneck | 01 |
| scoring | 02 |
| masking | 03 |
| decoder | 04 |
| training | 05 |
| heatmaps, put_together | 06 |
| long_sentences | 07 |
| design_choices | 08 |
| rnnsearch | 09 |
| beam_search | 10 |
| real_translation | 11 |
| beyond_translation | 12 |
| transformers | 13 |
| beside | 14 |
| costs | 15 |
"""

from utils.exercises.beam_search import beam_step, best_hypothesis
from utils.exercises.beside import score_after
from utils.exercises.beyond_translation import forward_moves, rouge_1, two_facts
from utils.exercises.bottleneck import (
    embedding_lookup,
    gru_step,
    last_states,
    sentence_log_probability,
    shift,
)
from utils.exercises.costs import mean_over_words
from utils.exercises.decoder import (
    all_weights,
    annotations,
    attend_then_update,
    decoder_step,
    from_d2l,
    init_state,
    lstm_rows,
)
from utils.exercises.design_choices import concat_attention, scaled_dot, told_apart
from utils.exercises.heatmaps import aer, best_links, links
from utils.exercises.long_sentences import near, push
from utils.exercises.masking import causal_weights, length_mask, masked_softmax
from utils.exercises.put_together import own_translator
from utils.exercises.real_translation import best_cut, perplexity_a_word, smoothed_loss
from utils.exercises.rnnsearch import first_state, reset_after
from utils.exercises.scoring import (
    additive_scores,
    attention_weights,
    context,
    joined_scores,
)
from utils.exercises.start import most_attended
from utils.exercises.training import (
    clip,
    epoch_loss,
    greedy_decode,
    mean_loss,
    train_step,
)
from utils.exercises.transformers import causal_attention, post_norm, split_heads

__all__ = [
    "additive_scores",
    "aer",
    "all_weights",
    "annotations",
    "attend_then_update",
    "attention_weights",
    "beam_step",
    "best_cut",
    "best_hypothesis",
    "best_links",
    "causal_attention",
    "causal_weights",
    "clip",
    "concat_attention",
    "context",
    "decoder_step",
    "embedding_lookup",
    "epoch_loss",
    "first_state",
    "forward_moves",
    "from_d2l",
    "greedy_decode",
    "gru_step",
    "init_state",
    "joined_scores",
    "last_states",
    "length_mask",
    "links",
    "lstm_rows",
    "masked_softmax",
    "mean_loss",
    "mean_over_words",
    "most_attended",
    "near",
    "own_translator",
    "perplexity_a_word",
    "post_norm",
    "push",
    "reset_after",
    "rouge_1",
    "scaled_dot",
    "score_after",
    "sentence_log_probability",
    "shift",
    "smoothed_loss",
    "split_heads",
    "told_apart",
    "train_step",
    "two_facts",
]
