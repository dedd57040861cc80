"""Does a test notice a real mistake? One at a time is made in a copy, and tests run.

    python tools/mutants.py [NAME or MODULE ...]

A mutant that no test notices says where a test is missing. Where code has changed,
TABLE must change with it: an old text must occur exactly once.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 600  # seconds; tests that take longer have noticed by their time
FIRST = {  # the test files nearest to a module, if not just the one of its name
    "seq2seq": ["seq2seq", "models"],
    "translator": ["variants"],
    "training": ["training", "by_hand"],
    "checkpoint": ["checkpoint", "training"],
    "data": ["data", "corpora"],
    "corpora": ["corpora", "data"],
    "guards": ["metrics"],
    "gold": ["gold", "corpora"],
    "transformer": ["transformer", "models"],
    "exercises/compare": ["engine"],
}

# A module; below it its mutants, each a name and then old text => new text. \n is a new
# line; a line further to the right continues the one above.
TABLE = r"""
attention
  queries and keys may differ in batch size
    k[:2] != v[:2] or q[0] != k[0] => k[:2] != v[:2]
  lengths of type float64 are taken
    valid_lens.dtype not in WHOLE_NUMBERS: => valid_lens.dtype == torch.float32:
  softmax over the queries
    return F.softmax(X, dim=-1) => return F.softmax(X, dim=1)
  the first padding counts as a word
    positions < valid_lens.unsqueeze(-1) => positions <= valid_lens.unsqueeze(-1)
  additive scores without tanh
    torch.tanh(sums) => sums
  weights without dropout
    torch.bmm(self.dropout(weights), values) => torch.bmm(weights, values)
seq2seq
  the fixed context is the bottom layer's
    FixedState(hidden_state[-1], => FixedState(hidden_state[0],
  the query is the bottom layer's
    return hidden_state[-1].unsqueeze(1) => return hidden_state[0].unsqueeze(1)
  attends with the state after the update
    self.attend(self.query(state.hidden_state), state) => self.attend(self.query(
      self.rnn(nn.ZeroPad1d((self.attention.key_size, 0))(x), state.hidden_state)[1]),
       state)
  attends to padding
    state.enc_outputs, state.enc_valid_lens\n => state.enc_outputs, None\n
  the encoder reads padding
    valid_lens.cpu() => torch.full_like(valid_lens, X.shape[1]).cpu()
  layers joined in place of directions
    (hidden_state[0::2], hidden_state[1::2]) => hidden_state.chunk(2)
  the attention decoder's state stays the first
    weights, state._replace(hidden_state=hidden) => weights, state
  a source without a word is taken
    lowest=1) => lowest=0)
  the weights shown keep the graph of their gradient
    weights.append(weight.detach()) => weights.append(weight)
training
  padding is counted in the loss
    ignore_index=PAD_ID => ignore_index=-100
  clip is ignored
    (model.parameters(), clip) => (model.parameters(), math.inf)
  the learning rate lags one step
    rising = (step + 1) / => rising = step /
  padding is counted among the tokens
    += batch.target_lens.sum().item() => += batch.target_out.numel()
  validation weighs batches by sentences
    count = batch.target_lens.sum().item() => count = len(batch.target_lens)
  an interrupted epoch keeps its losses
    del self.losses[len(self.history) * per_epoch :] => pass
  a resumed optimizer starts anew
    "state": dict(enumerate(adam))} => "state": {}}
  a resumed training draws other random numbers
    torch.set_rng_state(tensors["random state"]) => torch.get_rng_state()
  validation keeps what a gradient needs
    @torch.no_grad()\ndef evaluate_loss( => def evaluate_loss(
  a rate that rises to the end is refused
    if not 0 <= warmup <= 1: => if not 0 <= warmup < 1:
decoding
  greedy stops after 2S steps
    return 2 * source.shape[1] + 10 => return 2 * source.shape[1]
  a written <unk> is not listed as unknown
    source.unknown => [w for w in source.unknown if w != "<unk>"]
  log-probabilities of the beam in float32
    torch.where(first, 0.0, -torch.inf).double() => torch.where(first, 0.0, -torch.inf)
  beam search leaves dropout on
    length_penalty)\n    model.eval() => length_penalty)
  the length penalty is dropped
    log_probs / lengths.unsqueeze(1) ** length_penalty => log_probs
  every sentence takes the first one's hypotheses
    (first_rows + best // K).flatten() => (best // K).flatten()
  states stay while their hypotheses move
    select_rows(state, rows[kept]) => select_rows(state, kept.nonzero()[:, 0])
  an ended hypothesis grows longer
    lengths = beam.lengths + ~beam.ended => lengths = beam.lengths + 1
  the longest sentence allowed is refused
    len(ids) > most => len(ids) >= most
  decoding keeps what a gradient needs
    @torch.no_grad()\ndef greedy_decode( => def greedy_decode(
  the largest length penalty is refused
    not 0 <= length_penalty <= 10: => not 0 <= length_penalty < 10:
metrics
  sure links are compared with possible ones
    in_sure += len(a & s) => in_sure += len(a & p)
  a sure link need not be possible
    in_possible += len(a & (p | s)) => in_possible += len(a & p)
  links are target first
    (int(weights[i].argmax()), int(i)) => (int(i), int(weights[i].argmax()))
  brevity of references in place of hypotheses
    corpus_score(hypotheses, [references]) => corpus_score(references, [hypotheses])
  a weight at the threshold makes no link
    np.argwhere(weights >= threshold) => np.argwhere(weights > threshold)
  a bucket without its upper end
    if low <= row[0] <= high] => if low <= row[0] < max(high, low + 1)]
  Chinese is scored by other tokens
    "zh" if lang == "zh" else "char" => "char"
data
  the decoder reads what it should write
    [BOS_ID, *ids[:-1]] => ids
  the last batch is dropped
    batches = cut(order, batch_size) => batches = cut(order, batch_size)[:-1] or [order]
  batches ignore the seed
    random.Random(f"seed {self.seed}, epoch {k}") => random.Random(f"epoch {k}")
  vocabularies know the test split
    train = self["train"] => train = sum(self.splits.values(), [])
corpora
  splits share target sentences
    ] = root(("target", pair.target)) => ] = root(("source", pair.source))
  the reference is the second column, whatever it is
    line.split("\t")[order.index(target)] => line.split("\t")[1]
gold
  reversed directions keep their links
    (int(i), int(j)) if forward else (int(j), int(i)) => (int(i), int(j))
  a link to the word after the last
    i < source_len and j < target_len => i <= source_len and j <= target_len
models
  a Transformer's inner layer is as wide as the others
    num_ffn or 4 * num_hiddens => num_ffn or num_hiddens
  dropout is forgotten where a score is named
    attention_class(*sizes, dropout=dropout) => attention_class(*sizes)
checkpoint
  a stored model can be read by its owner alone
    os.chmod(partial, 0o644) => os.chmod(partial, 0o600)
  a save that fails leaves a file
    Path(partial).unlink(missing_ok=True) => partial
  a stored loss may be NaN
    is_number(number) and math.isfinite(number) => is_number(number)
  a parameter of whole numbers is loaded
    "floats" if tensor.is_floating_point() else => "floats" if tensor.dtype else
  a file of another format is read
    if metadata.get("format") != FORMAT: => if "format" not in metadata:
text
  a word as frequent as asked is left out
    counts[token] >= min_freq => counts[token] > min_freq
  an id below 0 counts from the end
    if not 0 <= ids < len(self): => if not ids < len(self):
  the longest Chinese word has one character less
    start + _LONGEST_WORD, => start + _LONGEST_WORD - 1,
subwords
  the pieces of all words are kept
    lru_cache(REMEMBERED)(pieces.encode) => lru_cache(None)(pieces.encode)
by_hand
  a subclass is computed as its base
    if type(part) not in PARTS: => if not isinstance(part, tuple(PARTS)):
  a hook before a part is overlooked
    for hooks in HOOKS): => for hooks in HOOKS[1:]):
  a method of a part's own is overlooked
    for key in vars(part): => for key in vars(model):
  dropout of weights is refused without training
    if attention.training and attention.dropout.p => if attention.dropout.p
  softmax's gradient lacks its sum
    d -= weight * d.sum(1, keepdim=True) => d -= 0
guards
  a weight that rounding has left above 1 is refused
    (weights <= 1 + 1e-6) => (weights <= 1)
translate
  translations in the system's encoding
    stdout.reconfigure(encoding="utf-8", => stdout.reconfigure(
  a line with a fault ends the scoring by columns
    if len(line.columns) < 2 and not line.fault: => if len(line.columns) < 2:
  all lines are read before the first is translated
    list(islice(lines, size)) => list(lines)
variants
  the shortest window is refused
    require_whole("reach", reach) => require_whole("reach", reach, 2)
translator
  word vectors start as PyTorch draws them
    nn.init.normal_(self.weight, std=embed_size**-0.5) => nn.init.normal_(self.weight)
rnnsearch
  W_a and U_a start as wide as the rest
    std=0.001 => std=0.01
transformer
  a next word stands at the first place
    add_positions(embedded, start), => add_positions(embedded),
files
  the longest line allowed is refused
    len(line) > LONGEST_LINE: => len(line) >= LONGEST_LINE:
exercises/engine
  an answer may change the case for the next
    copy.deepcopy(arguments), [] => arguments, []
  a check draws from the notebook's random numbers
    with torch.random.fork_rng(devices=[]), torch.inf => with torch.inf
  a gradient is that of the plain sum
    (p * torch.linspace(-1, 1, p.numel()).view(p.shape)).sum() => p.sum()
exercises/compare
  a hundredth off is right
    double(), rtol=1e-4 => double(), rtol=1e-2
  NaN is never right
    atol=1e-5, equal_nan=True => atol=1e-5
"""


class Mutant(NamedTuple):
    name: str
    module: str
    old: str
    new: str

    def code(self):
        """The module with the mistake; SystemExit, in words, if it can't be made."""
        path = ROOT / "utils" / f"{self.module}.py"
        code = path.read_text(encoding="utf-8")
        if (count := code.count(self.old)) != 1:
            raise SystemExit(f"{self.name!r}: {self.old!r} is {count} times in {path}")
        code = code.replace(self.old, self.new)
        try:
            compile(code, path, "exec")
        except SyntaxError as error:
            raise SystemExit(f"{self.name!r} makes no Python: {error}") from None
        return code


def mutants():
    """The rows of TABLE."""
    rows = []
    for line in TABLE.strip().replace("\n      ", "").splitlines():
        if not line.startswith(" "):
            module = line
        elif " => " not in line:
            name = line.strip()
        else:
            old, new = line.strip().replace(r"\n", "\n").split(" => ")
            rows.append(Mutant(name, module, old, new))
    return rows


def failure(folder, files, mark=""):
    """The first test of this mark that fails in these files; None if none does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-x", "-q", "-m", mark, *files],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return "time"
    if process.returncode in (0, 5):  # 5: there is no such test, as where none is slow
        return None
    if process.returncode > 2:  # pytest could not do its work: nothing is known
        raise SystemExit(f"pytest ended with code {process.returncode}:\n{output}")
    return re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", output, re.MULTILINE)[1]


def nearest(folder, module):
    """The test files of a module."""
    names = FIRST.get(module, [module.rpartition("/")[2]])
    found = [folder.glob(f"tests/utils/**/test_{name}.py") for name in names]
    return [file for files in found for file in files]


def main(names):
    """Try the mutants of these names, or of modules of these names; of none: all."""
    chosen = [m for m in mutants() if not names or {m.name, m.module} & names]
    caught = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        tracked = subprocess.check_output(
            ["git", "ls-files", "-z"], cwd=ROOT, text=True
        )
        for name in tracked.split("\0")[:-1]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
        files = {file for mutant in chosen for file in nearest(folder, mutant.module)}
        if test := failure(folder, sorted(files)):
            raise SystemExit(f"without any mutant, a test fails: {test}")
        for mutant in chosen:
            path = folder / "utils" / f"{mutant.module}.py"
            right = path.read_text(encoding="utf-8")
            path.write_text(mutant.code(), encoding="utf-8")
            files = nearest(folder, mutant.module)
            test = failure(folder, files, "not slow") or failure(folder, files, "slow")
            path.write_text(right, encoding="utf-8")
            caught += bool(test)
            print(f"{mutant.module:17}  {mutant.name:47}  {test or '-'}", flush=True)
    print(f"caught {caught} of {len(chosen)}")


if __name__ == "__main__":
    main(set(sys.argv[1:]))
