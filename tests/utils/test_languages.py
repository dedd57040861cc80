"""Languages by their codes, and the reader's."""

import sys

import pytest

from utils import exercises, languages
from utils.languages import check_language, language_name, readers_language

COURSE = "LEARNING_TO_ALIGN_LANG"
NAMES = COURSE, "JPY_SESSION_NAME", "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"


def test_codes():
    assert [check_language(code) for code in ("en", "cs", "xyz")] == ["en", "cs", "xyz"]
    assert language_name("zh") == "zh (Chinese)" and language_name("cs") == "cs"
    for long, short in languages.OTHERWISE.items():
        with pytest.raises(ValueError, match=f"'{long}': its code here is '{short}'"):
            check_language(long)
    for other in ("EN", "e", "", None, "english", "pt-br", "en\n"):
        with pytest.raises(ValueError, match="unknown .*: give its code, two or"):
            check_language(other)


CHINESE, ENGLISH = {"LANG": "zh_CN.UTF-8"}, {"LANG": "en_GB.UTF-8"}
READERS = [  # the variables, the folder, the name in VS Code; what they read
    (ENGLISH | {COURSE: "zh"}, "notebooks", "", "zh"),
    (ENGLISH, "build/zh", "", "zh"),
    (ENGLISH, "zh/solutions", "", "zh"),
    (ENGLISH | {"JPY_SESSION_NAME": "/srv/zh/03.ipynb"}, "notebooks", "", "zh"),
    (ENGLISH, ".", "/srv/course/zh/03.ipynb", "zh"),
    (ENGLISH, ".", "c:\\course\\zh\\03.ipynb", "zh"),
    (CHINESE, "notebooks", "", "zh"),
    (CHINESE | {"LC_ALL": "", "LANGUAGE": "zh:en"}, "notebooks", "", "zh"),
    (CHINESE | {COURSE: "en"}, "zh", "", "en"),
    (CHINESE | {"LC_ALL": "C"}, "notebooks", "", "en"),
    (ENGLISH | {"LANGUAGE": "en:zh"}, "notebooks", "", "en"),
    ({}, "zh/notebooks", "", "en"),  # a user, or a folder of languages, called zh
    ({}, "zh/mine/notebooks", "", "en"),
]


@pytest.mark.parametrize("variables, folder, vscode, lang", READERS)
def test_the_readers_language(
    tmp_path, monkeypatch, capsys, variables, folder, vscode, lang
):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path / folder)
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__vsc_ipynb_file__", vscode, raising=False)
    assert readers_language() == lang
    assert not exercises.shift(lambda ids: ([*ids, 2], [1, *ids]))
    begins = {"zh": "还没通过。", "en": "Not yet."}[lang]
    assert capsys.readouterr().out.startswith(begins)
    monkeypatch.setenv(COURSE, "de")
    with pytest.raises(ValueError, match="_LANG must be zh or en, got 'de'"):
        exercises.shift(...)
