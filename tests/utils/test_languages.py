"""Languages by their codes."""

import pytest

from utils.languages import OTHERWISE, check_language, language_name


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
