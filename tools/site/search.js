document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return; // not the page of the search
  // Notebooks come first, then other pages.
  Scorer.score = ([page, , , , score]) => score + (/^notebooks\/\d/.test(page) ? 100 : 0);
  // The search shows the text around what it found, and would show formulas as TeX.
  const textOf = Search.htmlToText;
  const formula = /\\\([^]*?\\\)|\\\[[^]*?\\\]/g;
  Search.htmlToText = (html, anchor) => textOf(html.replace(formula, "…"), anchor);
});
