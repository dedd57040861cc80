"""The shared module of *Learning to Align*: what the notebooks build, importable.

In reading order; a module imports only from those above it, `utils.exercises` apart.

guards         what a number or a name must be, in words
options        a command's options, as fields that carry help and limits
languages      their codes, and which have no spaces between words
text           tokens and back to sentences, vocabularies that read and write
data           pairs, corpora, batches, buckets of similar length
subwords       pieces of words, so that a small vocabulary writes any word
files          text files found, read, checked, downloaded
gold           links, sure and possible; gold sets on real text
data_check     what is wrong with a text of one's own, or may be
corpora        the Village, Multi30k, files of one's own

attention      the masked softmax, additive attention, the other scores
seq2seq        encoder, fixed-context decoder, attention decoder, and both ends joined
variants       attention and decoders with one part another, to compare
rnnsearch      the published model, by its equations
translator     the decoders for real text
transformer    a Transformer of the same interface
models         the catalogue: a name and plain values give a model

checkpoint     files that hold a model as itself, with its vocabularies
training       loss, step, Trainer
by_hand        the same loss with its gradient written by hand: an option
decoding       greedy search, beam search, exact search, translations
metrics        BLEU, chrF, alignment error rate
alignment      where a model looks while it reads a true translation, against gold
figures        how a notebook shows a figure: sharp, with a text that says it; fonts
plotting       heatmaps and curves
slides         figures and tables that fill a slide: for the lectures
explorer       in the browser: a translation to interfere with, predictions to draw
tasks          questions, headlines, dates by the same modules

processes      threads, devices; one training on several processes
recipe         a training on real text: settings, vocabularies, the best model kept
train          the training command: python -m utils.train --help
translate      the translating command: python -m utils.translate --help
exercises      what the notebooks ask, and the answers to each mistake
d2l_bridge     `d2l` loaded, as the reference to compare with
"""
