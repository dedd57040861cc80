"""Open every page of the site in Chromium and say what is wrong with it.

    python -m tools.site.check build/site

Found are: code that is cut, or fills much of a page; links and anchors that lead
nowhere, requests to another host, files that are missing, errors of scripts, formulas
left raw, pages that scroll sideways at 390 pixels, pictures without alternative text,
and what axe calls serious or critical, in both themes.
"""

import functools
import http.server
import re
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from tools import chromium

AXE = Path("build/tools/node_modules/axe-core/axe.min.js")
SEARCH = "search.html?q=annotation"  # what it finds stands among formulas
PHONE = {"width": 390, "height": 844}
THEMES = {"light": None, "dark": ["color-contrast"]}  # dark: what colours can change

MOST_CODE = 0.15  # of a notebook's page on a phone, before anything is unfolded

# Formulas are waited for, code is measured, and what is folded is opened: it is read,
# too. Returned are code's share of the height, and how many blocks of it are cut.
SETTLE = """async () => {
    if (window.MathJax?.startup) await MathJax.startup.promise;
    const code = [...document.querySelectorAll(".highlight pre")]
        .filter((e) => !e.closest(".output"));
    const notebook = document.querySelector(".cell");
    const tall = code.filter((e) => notebook && e.checkVisibility())
        .reduce((sum, e) => sum + e.getBoundingClientRect().height, 0);
    const share = tall / document.documentElement.scrollHeight;
    for (const folded of document.querySelectorAll("details")) folded.open = true;
    for (const late of document.images) late.loading = "eager";
    return [share, code.filter((e) => e.scrollWidth > e.clientWidth + 1).length];
}"""
FACTS = r"""() => {
    const all = (query) => [...document.querySelectorAll(query)];
    const raw = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const formula = /\\\(|\\\[|\$\$|\$[^$\n]*[\\^_{][^$\n]*\$/;
    for (let text; (text = walk.nextNode());)
        if (formula.test(text.data)
            && !text.parentElement.closest("pre, code, script, style, mjx-container"))
            raw.push(text.data.trim().slice(0, 60));
    raw.push(...all("mjx-merror").map((error) => error.title || error.textContent));
    raw.push(...all(".math:not(:has(mjx-container))").map((e) => e.textContent));
    const pictures = all("img, svg[role=img]")
        .filter((e) => !e.closest("mjx-container"));
    return {
        links: all("a[href]").map((link) => link.href),
        ids: all("[id], a[name]").flatMap((e) => [e.id, e.name]).filter(Boolean),
        raw,
        textless: pictures.filter((e) => !(e.alt || e.getAttribute("aria-label")))
            .map((image) => image.currentSrc || image.outerHTML.slice(0, 60)),
        broken: all("img").filter((image) => image.complete && !image.naturalWidth)
            .map((image) => image.src),
        width: document.documentElement.scrollWidth,
    };
}"""
# Words of code are coloured by their kind: one of each kind is enough for axe.
THIN_OUT = """() => {
    const seen = new Set();
    for (const word of document.querySelectorAll("pre span")) {
        if (seen.has(word.className)) word.replaceWith(...word.childNodes);
        seen.add(word.className);
    }
    document.body.normalize();
}"""
THEME = "theme => { document.body.dataset.theme = theme; }"
AXE_RUN = """async (rules) => {
    const options = { resultTypes: ["violations"] };
    if (rules) options.runOnly = { type: "rule", values: rules };
    const found = await axe.run(document, options);
    return found.violations
        .filter((one) => ["serious", "critical"].includes(one.impact))
        .map((one) => `${one.id}: ${one.nodes.length} times, such as `
            + `${one.nodes[0].target} ${one.nodes[0].html.slice(0, 120)}`);
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@contextmanager
def served(folder):
    """The folder, served on this machine -> its address."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def look_at(page, address, axe):
    """One page -> (its facts, what is wrong that needs no other page)."""
    wrong = []

    def requested(request):
        if urlsplit(request.url).scheme in ("http", "https") and (
            urlsplit(request.url).netloc != urlsplit(address).netloc
        ):
            wrong.append(f"asks another host: {request.url}")

    def answered(response):
        if response.status >= 400:
            wrong.append(f"is missing: {response.url}")

    def failed(error):
        wrong.append(f"a script fails: {error}")

    listeners = {"request": requested, "response": answered, "pageerror": failed}
    for event, listener in listeners.items():
        page.on(event, listener)
    page.goto(address, timeout=0)
    share, cut = page.evaluate(SETTLE)
    page.wait_for_load_state("networkidle", timeout=0)
    facts = page.evaluate(FACTS)
    wrong += [f"a formula is raw: {text}" for text in facts["raw"]]
    wrong += [f"a picture has no text: {name}" for name in facts["textless"]]
    wrong += [f"a picture isn't shown: {name}" for name in facts["broken"]]
    if share > MOST_CODE:
        wrong.append(f"code is {share:.0%} of its height, folded as it is")
    if cut:
        wrong.append(f"{cut} blocks of code are cut at {PHONE['width']} pixels")
    if facts["width"] > PHONE["width"]:
        wrong.append(f"is {facts['width']} pixels wide at {PHONE['width']}")
    if axe:
        page.evaluate(axe)
        page.evaluate(THIN_OUT)
        for theme, rules in THEMES.items():
            page.evaluate(THEME, theme)
            wrong += [f"{theme}: {found}" for found in page.evaluate(AXE_RUN, rules)]
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    return facts, wrong


def dead_links(folder, base, pages):
    """(path, link) for each link that leads nowhere; pages: {path: facts}."""
    for path, facts in pages.items():
        for link in sorted(set(facts["links"])):
            whole, anchor = urldefrag(unquote(link))
            if not whole.startswith(base):
                continue
            target = urlsplit(whole).path.lstrip("/") or "index.html"
            there = (folder / target).is_file()
            if there and anchor and target in pages:
                there = anchor in pages[target]["ids"]
            if not there:
                yield path, f"{target}#{anchor}" if anchor else target


def check(page, folder, axe=AXE):
    """Each fault as it is found: (path, sentence). page: of a browser; axe: or None."""
    program = axe and axe.read_text(encoding="utf-8")
    paths = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*.html")
    )
    if (folder / "search.html").is_file():
        paths.append(SEARCH)
    pages = {}
    page.set_viewport_size(PHONE)
    with served(folder) as base:
        for path in paths:
            pages[path], wrong = look_at(page, base + path, program)
            yield from ((path, sentence) for sentence in dict.fromkeys(wrong))
        for path, link in dead_links(folder, base, pages):
            yield path, f"leads nowhere: {link}"


def without_owner(folder):
    """How many links of the site lead to OWNER's repository, which doesn't exist."""
    pages = [path.read_text(encoding="utf-8") for path in folder.rglob("*.html")]
    return len(re.findall(r'href="[^"]*/OWNER/', "".join(pages)))


def main():
    if links := without_owner(Path(sys.argv[1])):
        print(f"OWNER isn't filled in, so {links} links lead nowhere: see PUBLISH.md.")
    if not chromium.chromium():
        print(
            "The site is built. Not checked, because Chromium isn't installed: links, "
            "scripts, formulas, the width on a phone, texts of pictures, and barriers."
        )
        return
    count, start = 0, time.monotonic()
    with chromium.page(reduced_motion="reduce") as page:  # what appears is there
        for path, sentence in check(page, Path(sys.argv[1])):
            print(f"{path}: {sentence}", flush=True)
            count += 1
    print(f"The check took {time.monotonic() - start:.0f} seconds.")
    if count:
        sys.exit(f"{count} faults")
    print("No page of the site has a fault.")


if __name__ == "__main__":
    main()
