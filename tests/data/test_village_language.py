"""Faults that readers found in the Village corpus, as patterns that never occur again.

village_patterns.tsv: the language, a name, the pattern, a sentence with the fault.
"""

import re
from pathlib import Path

import pytest

LISTS = {
    "kin": "(?:爸爸|妈妈|哥哥|妹妹|爷爷|奶奶|叔叔|姑姑|儿子|女儿)",
    "colour": "(?:红|白|黑|绿|蓝|黄)",
}
TABLE = Path(__file__).with_name("village_patterns.tsv").read_text(encoding="utf-8")
PATTERNS = [line.split("\t") for line in TABLE.splitlines()[1:]]


@pytest.mark.parametrize("lang, name, pattern, fault", PATTERNS)
def test_no_sentence_has_the_fault(rows, lang, name, pattern, fault):
    for key, words in LISTS.items():
        pattern = pattern.replace(f"{{{key}}}", words)
    assert re.search(pattern, fault)
    texts = (getattr(row, lang) for row in rows)
    assert not [text for text in texts if re.search(pattern, text)][:3]
