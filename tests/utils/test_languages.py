"""Languages by their codes, and the reader's."""

import sys

import pytest

from utils import exercises
from utils.languages import (
    OTHERWISE,
    check_language,
    language_name,
    readers_language,
)

SYSTEM = "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"


@pytest.mark.parametrize("lang", ["EN", "e", "", None, "english", "pt-br", "en\n"])
def test_what_is_no_code(lang):
    with pytest.raises(ValueError, match="unknown language .*: give its code, two or"):
        check_language(lang)


def test_codes():
    assert [check_language(code) for code in ("en", "cs", "xyz")] == ["en", "cs", "xyz"]
    assert language_name("zh") == "zh (Chinese)" and language_name("cs") == "cs"
    for long, short in OTHERWISE.items():
        with pytest.raises(ValueError, match=f"'{long}': its code here is '{short}'"):
            check_language(long)


@pytest.fixture
def reader(monkeypatch):
    """Makes a notebook's reader: their variables, the folder, the name in VS Code."""
    for name in ("LEARNING_TO_ALIGN_LANG", "JPY_SESSION_NAME", *SYSTEM):
        monkeypatch.delenv(name, raising=False)

    def set_up(variables, folder, vscode=""):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        folder.mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(folder)
        main = sys.modules["__main__"]
        monkeypatch.setattr(main, "__vsc_ipynb_file__", vscode, raising=False)

    return set_up


CHINESE = {"LANG": "zh_CN.UTF-8"}
ENGLISH = {"LANG": "en_GB.UTF-8"}


@pytest.mark.parametrize(
    ("variables", "folder", "vscode"),
    [
        (ENGLISH | {"LEARNING_TO_ALIGN_LANG": "zh"}, "notebooks", ""),
        (ENGLISH, "build/zh", ""),
        (ENGLISH, "zh/solutions", ""),
        (ENGLISH | {"JPY_SESSION_NAME": "/srv/course/zh/03.ipynb"}, "notebooks", ""),
        (ENGLISH, ".", "/srv/course/zh/03.ipynb"),
        (ENGLISH, ".", "c:\\course\\zh\\03.ipynb"),
        (CHINESE, "notebooks", ""),
        (CHINESE | {"LC_ALL": "", "LANGUAGE": "zh:en"}, "notebooks", ""),
    ],
)
def test_who_reads_chinese(reader, tmp_path, variables, folder, vscode, capsys):
    reader(variables, tmp_path / folder, vscode)
    assert readers_language() == "zh"
    assert not exercises.shift(lambda ids: ([*ids, 2], [1, *ids]))
    assert capsys.readouterr().out.startswith("还没通过。")


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        (CHINESE | {"LEARNING_TO_ALIGN_LANG": "en"}, "zh"),
        (CHINESE | {"LC_ALL": "C"}, "notebooks"),
        (ENGLISH | {"LANGUAGE": "en:zh"}, "notebooks"),
        ({}, "zh/notebooks"),  # a user, or a folder of languages, called zh
        ({}, "zh/mine/notebooks"),
    ],
)
def test_who_reads_english(reader, tmp_path, variables, folder):
    reader(variables, tmp_path / folder)
    assert readers_language() == "en"


def test_a_language_that_the_course_does_not_speak(reader, tmp_path):
    reader({"LEARNING_TO_ALIGN_LANG": "de"}, tmp_path)
    with pytest.raises(ValueError, match="_LANG must be zh or en, got 'de'"):
        exercises.shift(...)
