"""The exercises of notebook 14.

B sentences of S words, H hidden units, values of D numbers.
"""

import torch

from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw


def _looked(seed, B, S, H, D):
    """The gradient at a context, and the step of dot-product attention that made it."""
    shapes = (B, D), (B, H), (B, S, H), (B, S, D)
    d_context, query, keys, values = draw(seed, *shapes)
    weights = torch.einsum("bh,bsh->bs", query, keys).softmax(dim=1)
    return d_context, weights, query, keys, values


dot_backward = Exercise(
    "dot_backward",
    """
def dot_backward(d_context, weights, query, keys, values):  # -> three gradients
    d_weights = (values @ d_context.unsqueeze(2)).squeeze(2)  # (B, S)
    mean = (weights * d_weights).sum(dim=1, keepdim=True)  # (B, 1)
    d_scores = (weights * (d_weights - mean)).unsqueeze(2)  # (B, S, 1)
    d_query = (d_scores * keys).sum(dim=1)  # (B, H)
    d_keys = d_scores * query.unsqueeze(1)  # (B, S, H)
    d_values = weights.unsqueeze(2) * d_context.unsqueeze(1)  # (B, S, D)
    return d_query, d_keys, d_values
""",
    {
        "Asked for are the gradients of query, keys and values, in this order. Compare "
        "your lines with the formulas one by one: weights, scores, then these three.": [
            _looked(0, 2, 3, 4, 5),
            _looked(1, 3, 5, 2, 4),
        ],
        "Here are other sizes. Is one written into your code, or squeezed away?": [
            _looked(2, 1, 4, 3, 2),
            _looked(3, 3, 1, 2, 4),
            _looked(4, 2, 3, 1, 1),
            _looked(5, 3, 3, 3, 3),
        ],
    },
    """
The softmax shares out 1, so what one weight gains the others lose: the weighted mean of
the weights' gradients is to be subtracted.
    d_weights - mean => d_weights
The mean that is subtracted is the weighted one: each gradient counts by its weight.
    (weights * d_weights).sum( => d_weights.mean(
The way back through the softmax has the weight as a factor.
    weights * (d_weights - mean) => d_weights - mean
The way back doesn't go through the softmax: these are the gradients of the weights.
    (weights * (d_weights - mean)) => d_weights
The query is in every score of its sentence: its gradient is the sum over the keys.
    (d_scores * keys).sum( => (d_scores * keys).mean(
Each weight is the factor that its value has in the context.
    weights.unsqueeze(2) * d_context.unsqueeze(1) =>
        d_context.unsqueeze(1).expand_as(values)
The values get the gradient of the context by the weights, not by the scores' gradient.
    weights.unsqueeze(2) * d_context => d_scores * d_context
The gradients stand in another order: query, keys, values.
    d_query, d_keys, d_values => d_values, d_keys, d_query
In a product each factor gets the other one: the query's gradient is made of keys, the
keys' gradient of the query.
    * query.unsqueeze(1) => * keys
""",
)
