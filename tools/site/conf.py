"""Sphinx's settings for the site. source.py writes what it reads: build/site-source."""

import re
from html import escape
from pathlib import Path
from textwrap import shorten

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.search.en import SearchEnglish

ROOT = Path(__file__).resolve().parents[2]
OWNER = re.search(r"v2/gh/([\w.-]+)/", (ROOT / "README.md").read_text("utf-8"))[1]

project = "Learning to Align"
author = "the course's authors"
version = re.search(r'version = "(.+)"', (ROOT / "pyproject.toml").read_text())[1]
language = "en"
extensions = ["myst_nb", "sphinx.ext.mathjax"]

# --- notebooks, as they were committed ------------------------------------------

nb_execution_mode = "off"
nb_ipywidgets_js = {}  # no widget lives here
nb_code_prompt_show = "Show the {type}"
nb_code_prompt_hide = "Hide the {type}"
nb_output_stderr = "show"
nb_render_markdown_format = "gfm"  # with tables
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
suppress_warnings = ["mystnb.unknown_mime_type", "myst.header"]

# --- the pages -----------------------------------------------------------------------

html_theme = "furo"
html_title = project
html_baseurl = f"https://{OWNER}.github.io/{project.lower().replace(' ', '-')}/"
html_favicon = "favicon.svg"
html_theme_options = {"top_of_page_buttons": []}
html_static_path = [
    "site.css",
    "search.js",
    "../../utils/explorer.css",
    "../../utils/element.js",
    "../../utils/draw.js",
    "../../utils/explorer.js",
    "../../utils/translator.js",
    "../../utils/words.js",
    "../../data/models/village-en-fr.safetensors",
    "../../data/models/village-en-zh.safetensors",
    "../../build/tools/node_modules/mathjax/es5/tex-svg.js",
]
html_extra_path = ["../../build/site-extra"]
html_css_files = ["site.css", "explorer.css"]
html_js_files = ["search.js"]
mathjax_path = "tex-svg.js"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_scaled_image_link = True
html_domain_indices = False
html_use_index = False


MENDED = [  # where, what the tools write, and how a keyboard or a reader needs it
    ("body", "<pre>", '<pre tabindex="0">'),  # it scrolls in its box
    (
        "body",
        'div class="table-wrapper',
        'div tabindex="0" class="scrolls table-wrapper',
    ),
    ("body", "the source</p>", "the code</p>"),
    ("body", ' aria-label="Toggle hidden content"', ""),  # not what is seen
    ("furo_navigation_tree", 'role="heading"', 'role="heading" aria-level="2"'),
]


def mended(app, pagename, templatename, context, doctree):
    for place, old, new in MENDED:
        if place in context:
            context[place] = context[place].replace(old, new)


IN_CHINESE = {  # texts and labels of the frame
    "Show the code": "展开代码",
    "Hide the code": "收起代码",
    "Show the output": "展开输出",
    "Hide the output": "收起输出",
    "The picture in words": "图的文字说明",
    "Figure": "图",
    "The explorer needs JavaScript.": "交互演示需要 JavaScript。",
    "A drawing needs JavaScript.": "在这里画图需要 JavaScript。",
    "Link to this heading": "这一节的链接",
    "Skip to content": "跳到正文",
    "Back to top": "回到顶部",
    "On this page": "本页内容",
    "Search": "搜索",
    "Next": "下一页",
    "Previous": "上一页",
    "Made with": "制作工具：",
    "To look at": "看一看",
    "The notebooks": "英文笔记本",
    "To look up": "查一查",
    "To teach": "教学",
    "Toggle site navigation sidebar": "打开或关上导航",
    "Toggle table of contents sidebar": "打开或关上本页目录",
    "Toggle Light / Dark / Auto color theme": "切换浅色、深色或自动",
}
OWN = re.compile(r'<p class="caption"[^>]*><span[^>]*>中文版.*?</ul>\n', re.DOTALL)


def switched(app, pagename, templatename, context, doctree):
    """A page leads to the same one in the other language, or to where that begins.

    The page before it and the next one are of its own language.
    """
    if "body" not in context:
        return
    folder, _, name = pagename.rpartition("/")
    for way in ("prev", "next"):
        link = (context[way] or {}).get("link", "")
        if "/zh/" in link or folder == "zh" and "/" in link:
            context[way] = None
    words, language, twin, other = "中文", "zh-CN", f"zh/{name}", "zh/00_start_here"
    if folder == "zh":
        words, language, twin, other = "English", "en", f"notebooks/{name}", "index"
        context["language"] = "zh-CN"
        navigation, caption = context["furo_navigation_tree"], '<p class="caption"'
        (own,) = OWN.findall(navigation)
        navigation = navigation.replace(own, "").replace(caption, own + caption, 1)
        context["furo_navigation_tree"] = navigation
    twin = twin if twin in app.env.found_docs else other
    link = app.builder.get_relative_uri(pagename, twin)
    context["body"] = (
        f'<p class="language"><a href="{link}" hreflang="{language}" lang="{language}">'
        f"{words}</a></p>{context['body']}"
    )


def framed(app, exception):
    """The frame of the Chinese pages in Chinese: whole texts and attributes.

    Templates write it, so this comes last. A word that they don't write any more fails.
    """
    frame = re.compile(rf'([>"]\s*)({"|".join(map(re.escape, IN_CHINESE))})(?=\s*[<"])')
    text = ""
    for path in Path(app.outdir, "zh").glob("*.html"):
        page = path.read_text("utf-8")
        page = frame.sub(lambda found: found[1] + IN_CHINESE[found[2]], page)
        path.write_text(page, "utf-8")
        text += page
    for english, chinese in IN_CHINESE.items():
        if not exception and not re.search(rf'[>"]\s*{chinese}\s*[<"]', text):
            raise ExtensionError(f"No Chinese page has {english!r} in its frame.")


class Search(SearchEnglish):
    """Chinese has no spaces: its characters and each two of them are found as words."""

    js_splitter_code = r"""
var splitQuery = (query) => query
  .replace(/([\u3400-\u9fff])(?=([\u3400-\u9fff])?)/g, " $1 $1$2 ")
  .split(/[^\p{Letter}\p{Number}_]+/u).filter(Boolean);
"""

    def split(self, text):
        pairs = r"([\u3400-\u9fff])(?=([\u3400-\u9fff])?)"
        return super().split(re.sub(pairs, r" \1 \1\2 ", text))


def introduced(app, pagename, templatename, context, doctree):
    """What other sites show of a page: its first paragraph, and one picture."""
    first = doctree and next(doctree.findall(nodes.paragraph), None)
    if not first:
        return
    about = shorten(first.astext().removeprefix("Goal. "), 200, placeholder=" …")
    said = {
        "name='description'": about,
        "property='og:description'": about,
        "property='og:title'": context["title"],
        "property='og:type'": "article",
        "property='og:url'": context["pageurl"],
        "property='og:image'": html_baseurl + "social.png",
        "name='twitter:card'": "summary_large_image",
    }
    for name, value in said.items():
        context["metatags"] += f'<meta {name} content="{escape(value)}">\n'


def setup(app):
    app.add_search_language(Search)
    app.connect("html-page-context", introduced)
    app.connect("html-page-context", mended, priority=900)  # after furo
    app.connect("html-page-context", switched, priority=901)
    app.connect("build-finished", framed)
