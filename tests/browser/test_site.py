"""The check of the site: it names what is wrong with a page, and nothing else."""

import pytest

from tools.site import check

GOOD = '<p style="height: 1000px">Text</p>'
FAULTS = {
    "code is 50% of its height": '<div class="cell highlight"><pre class="tall"></pre>',
    "1 blocks of code are cut": f'<div class="highlight"><pre>{"x" * 200}</pre></div>',
    "a formula or table is raw: $a_b$": "<p>$a_b$</p>",
    "a formula or table is raw: | a": "<p>| a |\n| --- | --- |</p>",
    "a picture has no text": '<svg role="img"></svg>',
    "a picture isn't shown": '<img src="data:image/png;base64,eA==" alt="none">',
    "is missing": '<script src="no.js"></script>',
    "asks another host": '<script src="http://localhost/no.js"></script>',
    "a script fails": "<script>no</script>",
    "leads nowhere: index.html#no": '<a href="#no">there</a>',
    "is 500 pixels wide": '<div style="width: 500px">wide</div>',
}
STYLE = "body { margin: 0 } pre { overflow: auto; margin: 0 } .tall { height: 1000px }"


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_a_fault_is_named(fault, browser, tmp_path):
    text = f"<title>x</title><style>{STYLE}</style>{GOOD}{FAULTS.get(fault, '')}"
    (tmp_path / "index.html").write_text(text, encoding="utf-8")
    found = [sentence for _, sentence in check.check(browser, tmp_path, axe=None)]
    assert bool(found) == bool(fault)
    assert all(sentence.startswith(fault) for sentence in found)
