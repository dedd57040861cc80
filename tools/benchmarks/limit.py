"""The limit: the matrix products of a training step, and nothing else.

What a step does beside them (tanh, softmax, gates, loss, Adam) could at best cost
nothing. The products stand in the best order we know: one large product wherever the
loop doesn't force one a step, and weights stacked where they multiply the same vector.
"""

import torch


def linear(rows, inputs, outputs, steps=1):
    """Forward and both backward products of a layer, as two functions.

    (rows, inputs) -> (rows, outputs), once for each of `steps`. The weight's gradient
    is one product over all steps.
    """
    x, d_x = torch.randn(steps, rows, inputs), torch.empty(steps, rows, inputs)
    y, d_y = torch.empty(steps, rows, outputs), torch.randn(steps, rows, outputs)
    W, d_W = torch.randn(outputs, inputs), torch.empty(outputs, inputs)

    def forward():
        for t in range(steps):
            torch.mm(x[t], W.T, out=y[t])

    def backward():
        for t in range(steps):
            torch.mm(d_y[t], W, out=d_x[t])
        torch.mm(d_y.flatten(0, 1).T, x.flatten(0, 1), out=d_W)

    return forward, backward


def weighted_sum(B, S, T, D):
    """The same for the contexts: weights (B, 1, S) times values (B, S, D), T times."""
    weights, d_weights = torch.rand(T, B, 1, S), torch.empty(T, B, 1, S)
    values, d_values = torch.randn(B, S, D), torch.empty(B, S, D)
    contexts, d_contexts = torch.empty(T, B, 1, D), torch.randn(T, B, 1, D)
    all_weights, d_all = weights[:, :, 0].permute(1, 2, 0), d_contexts[:, :, 0]

    def forward():
        for t in range(T):
            torch.bmm(weights[t], values, out=contexts[t])

    def backward():
        for t in range(T):
            torch.bmm(d_contexts[t], values.mT, out=d_weights[t])
        torch.bmm(all_weights, d_all.transpose(0, 1), out=d_values)

    return forward, backward


def scores(B, S, T, H):
    """The scores' matrix-vector products, (BS, H) times v (H), T times; and v's."""
    features, v, out = torch.randn(B * S, H), torch.randn(H), torch.empty(B * S)

    def forward():
        for _ in range(T):
            torch.mv(features, v, out=out)

    d_v = torch.empty(H)

    def backward():
        for _ in range(T):
            torch.mv(features.T, out, out=d_v)

    return forward, backward


def matrix_products(sizes, S, T, with_scores=False):
    """A function without arguments that does all of them, for the model of `sides`.

    with_scores: count the scores' matrix-vector products too.
    """
    V, E, H, B = sizes
    layers = [
        linear(S * B, E, 3 * H),  # encoder: the words' part of the gates
        linear(B, H, 3 * H, steps=S),  # encoder: the state's part
        linear(S * B, H, H),  # the projected keys
        linear(T * B, E, 3 * H),  # decoder: the words' part
        linear(B, H, H + 3 * H, steps=T),  # the query, and the state's part, stacked
        weighted_sum(B, S, T, H),
        linear(B, H, 3 * H, steps=T),  # decoder: the context's part
        linear(T * B, H, V),  # the output layer
    ]
    if with_scores:
        layers.append(scores(B, S, T, H))

    def run():
        for forward, _ in layers:
            forward()
        for _, backward in reversed(layers):
            backward()

    return run
