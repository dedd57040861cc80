"""Open every page of the site in Chromium and say what is wrong with it.

    python -m tools.site.check build/site

Found are: code that is cut, or fills much of a page; links and anchors that lead
nowhere, requests to another host, files that are missing, errors of scripts, formulas
and tables left raw, pages that scroll sideways at 390 pixels, pictures without
alternative text, and what axe calls serious or critical, in both themes.
"""

import re
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from tools import chromium

HOST = "http://course/"  # not on any network: `serve` answers
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
    const formula = /\\\(|\\\[|\$\$|\$[^$\n]*[\\^_{][^$\n]*\$|\| (—|---) \|/;
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


def serve(page, folder):
    """Have a page of a browser find a folder's files at HOST, and nothing elsewhere.

    Returned is a list, to which each request that was in vain is added in words.
    """
    vain = []

    def answer(route):
        url = route.request.url
        path = folder / unquote(urlsplit(url).path).lstrip("/")
        if url.startswith(HOST) and path.is_file():
            return route.fulfill(path=path)
        host = "is missing" if url.startswith(HOST) else "asks another host"
        vain.append(f"{host}: {url}")
        route.fulfill(status=404)

    page.route("**/*", answer)
    return vain


def look_at(page, path, folder, axe):
    """One page -> (its facts, what is wrong that needs no other page)."""
    wrong = serve(page, folder)
    page.on("pageerror", lambda error: wrong.append(f"a script fails: {error}"))
    page.set_viewport_size(PHONE)
    page.set_default_timeout(0)
    page.goto(HOST + path)
    share, cut = page.evaluate(SETTLE)
    page.wait_for_load_state("networkidle")
    facts = page.evaluate(FACTS)
    wrong += [f"a formula or table is raw: {text}" for text in facts["raw"]]
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
    page.close()
    return facts, wrong


def dead_links(folder, pages):
    """(path, link) for each link that leads nowhere; pages: {path: facts}."""
    for path, facts in pages.items():
        for link in sorted(set(facts["links"])):
            whole, anchor = urldefrag(unquote(link))
            target = urlsplit(whole).path.lstrip("/") or "index.html"
            there = (folder / target).is_file()
            if there and anchor and target in pages:
                there = anchor in pages[target]["ids"]
            if whole.startswith(HOST) and not there:
                yield path, f"{target}#{anchor}" if anchor else target


def check(browser, folder, axe=AXE):
    """Each fault as it is found: (path, sentence). axe: a file, or None."""
    program = axe and axe.read_text(encoding="utf-8")
    paths = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.html"))
    pages = {}
    for path in [*paths, *[SEARCH] * ("search.html" in paths)]:
        tab = browser.new_page(reduced_motion="reduce")  # what appears is there
        pages[path], wrong = look_at(tab, path, folder, program)
        yield from ((path, sentence) for sentence in dict.fromkeys(wrong))
    for path, link in dead_links(folder, pages):
        yield path, f"leads nowhere: {link}"


def without_owner(folder):
    """How many links of the site lead to OWNER's repository, which doesn't exist."""
    pages = [path.read_text(encoding="utf-8") for path in folder.rglob("*.html")]
    return len(re.findall(r'href="[^"]*/OWNER/', "".join(pages)))


def main():
    folder, count = Path(sys.argv[1]), 0
    if links := without_owner(folder):
        print(f"OWNER isn't filled in, so {links} links lead nowhere: see PUBLISH.md.")
    if not chromium.chromium():
        print(
            "The site is built. Not checked, because Chromium isn't installed: links, "
            "scripts, formulas, the width on a phone, texts of pictures, and barriers."
        )
        return
    with chromium.started() as browser:
        for path, sentence in check(browser, folder):
            print(f"{path}: {sentence}", flush=True)
            count += 1
    if count:
        sys.exit(f"{count} faults")
    print("No page of the site has a fault.")


if __name__ == "__main__":
    main()
