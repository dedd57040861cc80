"""What is taught is shown in exactly one notebook, equal to utils to the letter."""

import mirror
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

# The public classes and functions of these modules, but for guards of arguments, ...
WHOLE_MODULES = ("attention", "seq2seq", "variants", "lengths", "transformer")
GUARDS = ("check_", "require_")
# ... without these, which only connect the parts, ...
PLUMBING = {
    "seq2seq": "build_model",
    "variants": "decoder_sizes fed_size resized_gru",
    "transformer": "build_transformer head_size",
}
# ... and with these of other modules.
TAUGHT = {
    "text": "Vocab",
    "data": "Batch BatchLoader",
    "training": "masked_cross_entropy train_step running_mean",
    "translator": "DropoutEmbedding add_remedies Readout TranslatorDecoder",
    "by_hand": "gru_step gru_slopes gru_step_backward "
    "attention_steps attend_backward attention_steps_backward",
    "decoding": "greedy_decode select_rows extend_beam beam_is_settled beam_search",
    "rnnsearch": "FirstState GatedUnit DeepOutput RNNsearchDecoder initialise",
    "tasks": "last_fact attention_on_gold whole_sentences forward_share",
    "metrics": "links_from_weights alignment_error_rate",
}


def full_names(table):
    return {
        f"utils.{module}.{name}" for module in table for name in table[module].split()
    }


def taught(objects):
    """The names that the tables above call taught, among those that utils has."""
    found = full_names(TAUGHT)
    for full_name in set(objects) - full_names(PLUMBING):
        _, module, name = full_name.split(".")
        if module in WHOLE_MODULES and not name.startswith(GUARDS):
            found.add(full_name)
    return found


def test_the_notebooks_mirror_utils():
    assert mirror.problems() == []


def test_what_is_taught_is_shown_once():
    objects = mirror.public_objects()
    known = full_names(TAUGHT) | full_names(PLUMBING)
    assert known - set(objects) == set(), "the tables name what is not in utils"
    places = mirror.mirrored()
    assert {name for name in taught(objects) if len(places.get(name, [])) != 1} == set()


def test_a_new_part_of_a_taught_module_is_taught():
    objects = ["utils.attention.Score", "utils.attention.check_it", "utils.data.cut"]
    assert taught(objects) - full_names(TAUGHT) == {"utils.attention.Score"}


# --- the tool itself, on a repository with one small module -------------------------

DOUBLE = "@functools.cache\ndef double(x):\n    # Twice is enough.\n    return 2 * x"
BOX = 'class Box:\n    """Holds one thing."""\n\n    size = 1'
SMALL = f"import functools\n\n\n{DOUBLE}\n\n\n{BOX}\n\n\ndef _hidden():\n    pass\n"
SHOWN = f"# mirror: utils.small.double\n{DOUBLE}"


@pytest.fixture
def small(tmp_path):
    """`small(*cells)` writes its only notebook and returns the repository's folder."""
    (tmp_path / "utils").mkdir()
    (tmp_path / "utils" / "small.py").write_text(SMALL, encoding="utf-8")
    (tmp_path / "notebooks").mkdir()

    def write(*sources):
        cells = [new_code_cell(source) for source in sources]
        nbformat.write(new_notebook(cells=cells), tmp_path / "notebooks" / "01_a.ipynb")
        return tmp_path

    return write


def test_a_right_mirror_passes(small):
    root = small("x = 1", SHOWN, "%pip list\n!ls")
    assert mirror.problems(root) == []
    assert mirror.mirrored(root) == {"utils.small.double": ["01_a.ipynb, cell 2"]}


@pytest.mark.parametrize(
    "source, complaint",
    [
        (f"{SHOWN}  # or not", "differs"),
        (SHOWN.replace("Twice", "Two"), "differs"),
        (f"{SHOWN}\n", "differs"),
        (SHOWN.replace("@functools.cache\n", ""), "differs"),
        (SHOWN.replace("small.double", "small.triple"), "is no public"),
        ("# mirror: utils.small._hidden\ndef _hidden():\n    pass", "is no public"),
        (DOUBLE, "without the marker"),
        ("class Box:\n    size = 2", "without the marker"),
        (SHOWN.replace("# mirror", "#mirror"), "a marker is the first line"),
        (f"\n{SHOWN}", "a marker is the first line"),
        ("def broken(:", "is not Python"),
    ],
)
def test_a_wrong_mirror_is_found(small, source, complaint):
    assert any(complaint in problem for problem in mirror.problems(small(source)))


def test_showing_a_thing_twice_is_found(small):
    assert any("shown 2 times" in text for text in mirror.problems(small(SHOWN, SHOWN)))


def test_the_tool_writes_the_marked_cells_and_nothing_else(small):
    root = small("x = 1", "# mirror: utils.small.double\nold", "# mirror: utils.no")
    path = root / "notebooks" / "01_a.ipynb"
    before = nbformat.read(path, as_version=4)
    before.cells[1].outputs = [new_output("stream", text="kept")]
    before.cells[1].metadata.tags = ["kept"]
    nbformat.write(before, path)

    assert mirror.write(root) == [path]
    after = nbformat.read(path, as_version=4)
    before.cells[1].source = SHOWN
    assert after == before
    assert mirror.write(root) == []
