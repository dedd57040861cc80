"""Does a test notice a real mistake? One at a time is made in a copy, and tests run.

    python tools/mutants.py [--only NAME] [--out FILE.json]

A mutant that no test notices says where a test is missing. All take an hour. Where
code has changed, TABLE must change with it: an old text must occur exactly once.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 600  # seconds; tests that take longer have noticed by their time
FIRST = {  # the tests nearest to a module: most mutants get no further
    "attention": ["attention"],
    "seq2seq": ["seq2seq", "models"],
    "training": ["training", "by_hand"],
    "decoding": ["decoding"],
    "metrics": ["metrics"],
    "data": ["data", "corpora"],
    "corpora": ["corpora", "data"],
    "gold": ["gold", "corpora"],
}
THEN = [*dict.fromkeys(name for names in FIRST.values() for name in names)]
THEN += ["variants", "alignment", "d2l", "rnnsearch", "transformer", "checkpoint"]
THEN += ["subwords", "text", "explorer", "recipe", "train", "faults_inputs"]

# A module; below it its mutants, each a name and then old text => new text. \n is a new
# line; a line further to the right continues the one above.
TABLE = r"""
attention
  queries and keys may differ in batch size
    values.shape[:2] or queries.shape[0] != keys.shape[0] => values.shape[:2]
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
    state.enc_valid_lens,\n        )\n        return => None,\n        )\n        return
  the encoder reads padding
    valid_lens.cpu() => torch.full_like(valid_lens, X.shape[1]).cpu()
  layers joined in place of directions
    (hidden_state[0::2], hidden_state[1::2]) => hidden_state.chunk(2)
  the attention decoder's state stays the first
    weights, state._replace(hidden_state=hidden) => weights, state
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
  an interrupted epoch skips a batch
    if index < done: => if index < done + (done > 0):
  a resumed optimizer starts anew
    "state": state} => "state": {}}
  a resumed training draws other random numbers
    torch.set_rng_state(rng_state) => torch.get_rng_state()
decoding
  greedy stops after 2S steps
    return 2 * source.shape[1] + 10 => return 2 * source.shape[1]
  a written <unk> is not listed as unknown
    if word not in src_vocab] => if word not in src_vocab.token_to_idx]
  log-probabilities of the beam in float32
    torch.where(first, 0.0, -torch.inf).double() => torch.where(first, 0.0, -torch.inf)
  beam search leaves dropout on
    length_penalty)\n    model.eval() => length_penalty)
  the length penalty is dropped
    log_probs / lengths.unsqueeze(1) ** length_penalty => log_probs
  every sentence takes the first one's hypotheses
    (first_rows + best // K).flatten() => (best // K).flatten()
  states stay while their hypotheses move
    state = select_rows(state, rows[kept], => state = select_rows(state,
       kept.nonzero()[:, 0],
  who is left reads the keys of who has gone
    rows[kept], going.nonzero()[:, 0]) => rows[kept], torch.arange(len(sentences)))
  an ended hypothesis grows longer
    lengths = beam.lengths + ~beam.ended => lengths = beam.lengths + 1
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
    if b[0] <= length <= b[1] => if b[0] <= length < max(b[1], b[0] + 1)
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
gold
  reversed directions keep their links
    (int(i), int(j)) if forward else (int(j), int(i)) => (int(i), int(j))
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


def failure(folder, names):
    """The first test that fails in the files of these names; None if none does."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly"]
    for name in names:
        file = f"test_{name}.py"
        command.append(str(next(folder.glob(f"tests/**/{file}"), file)))
    env = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    options = {"cwd": folder, "env": env, "start_new_session": True}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        tests = subprocess.Popen(command, stdout=log, stderr=log, **options)
        try:
            code = tests.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return "time"
        finally:
            if tests.poll() is None:
                os.killpg(tests.pid, signal.SIGKILL)
        log.seek(0)
        output = log.read()
    if code > 2:  # pytest could not do its work: that says nothing about the mutant
        raise SystemExit(f"pytest ended with code {code}:\n{output[-3000:]}")
    named = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", output, re.MULTILINE)
    return (named[1] if named else f"code {code}") if code else None


def copy(folder):
    """The repository's own files, without what lies beside them."""
    names = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    for name in names.split("\0")[:-1]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", metavar="NAME", help="this mutant alone")
    parser.add_argument("--out", metavar="FILE.json", type=Path, help="store results")
    args = parser.parse_args()
    chosen = {m: m.code() for m in mutants() if args.only in (None, m.name)}
    if not chosen:
        parser.error(f"no mutant is named {args.only!r}")
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        copy(folder)
        if test := failure(folder, THEN):
            raise SystemExit(f"without any mutant, a test fails: {test}")
        for mutant, code in chosen.items():
            path, start = folder / "utils" / f"{mutant.module}.py", time.time()
            path.write_text(code, encoding="utf-8")
            first = FIRST[mutant.module]
            rest = [name for name in THEN if name not in first]
            test = failure(folder, first) or failure(folder, rest)
            shutil.copy2(ROOT / "utils" / path.name, path)
            seconds = round(time.time() - start)
            row = {**mutant._asdict(), "caught_by": test, "seconds": seconds}
            results.append(row)
            print(f"{mutant.module:9}  {mutant.name:47}  {test or '-'}", flush=True)
            if args.out:
                args.out.write_text(json.dumps(results, indent=1), encoding="utf-8")
    caught = sum(row["caught_by"] is not None for row in results)
    print(f"caught {caught} of {len(results)}")


if __name__ == "__main__":
    main()
