// The search shows the text around what it found, and would show formulas as TeX.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return; // not the page of the search
  const textOf = Search.htmlToText;
  const formula = /\\\([^]*?\\\)|\\\[[^]*?\\\]/g;
  Search.htmlToText = (html, anchor) => textOf(html.replace(formula, "…"), anchor);
});
