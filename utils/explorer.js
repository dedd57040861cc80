// The explorer: a sentence is translated word by word, and the reader interferes.
// It runs on a page of the site and, through anywidget, in a notebook.
import { element, keepKeys } from "./element.js";
import { detokenize, distance, readModel, tokenize } from "./translator.js";
import { speaker } from "./words.js";

const MOST_WORDS = 30; // of a source sentence
const CHOICES = 6; // most probable words that a step shows
const PAUSE = 400; // milliseconds without a key after which a sentence counts as typed

const quoted = (word) => `“${word}”`;
const number = (x) => (x === -Infinity ? "−∞" : x.toFixed(2).replace("-", "−"));

// What differs from the steps of the model left alone: words, and rows of weights.
export function differences(free, steps) {
  const words = [], rows = [];
  steps.forEach(({ word, weights }, i) => {
    if (free[i]?.word !== word) words.push(i);
    const same = (w, j) => Math.abs(w - weights[j]) < 1e-6;
    if (!free[i]?.weights.every(same)) rows.push(i);
  });
  return { words, rows };
}

// Put an explorer into an element. load: a model's name -> a promise of its file.
// settings: { models: names, sentences: texts, glosses: { word: English },
// gold: [{ source, target, sure, possible }], links as [source place, target place],
// rowByRow: whether what comes after the chosen step is still out of sight }.
export function mount(root, { models, sentences, gold, glosses, rowByRow }, load) {
  const loaded = new Map(); // a model's name -> a promise of the Translator
  const say = speaker(root);
  let model, words = [], free = [], steps = [], chosen = 0, column = 0;
  let forced = new Map(), erased = new Set();

  // --- what is there from the beginning ----------------------------------------------

  const options = (texts) => texts.map((value) =>
    element("option", { value }, say(value)));
  const into = element("select", { onchange: start }, ...options(models));
  const pick = element("select", { lang: "en",
    onchange: () => type(pick.value) }, ...options(sentences));
  const sentence = element("input", {
    type: "text", lang: "en",
    autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    oninput: () => {
      clearTimeout(sentence.pause);
      sentence.pause = setTimeout(start, PAUSE);
    },
  });
  const about = element("p", { class: "ex-about", role: "status" });
  const text = element("p", { class: "ex-text" });
  const map = element("table", { class: "ex-map", onkeydown: moved });
  const said = element("p", { role: "status" });
  const choices = element("div", { class: "ex-choices" });
  const known = element("datalist", { id: `ex-${Math.random()}` });
  // Neither field acts when it is left: what is pressed next would be drawn anew first.
  const other = element("input", {
    type: "text", list: known.id, autocapitalize: "off",
    onkeydown: (event) => event.key === "Enter" && force(other.value),
  });
  const write = element("button", { type: "button",
    onclick: () => force(other.value) }, say("write"));
  const again = element("button", { type: "button", onclick: start },
    say("undo all"));
  const next = element("button", { type: "button",
    onclick: () => choose(chosen + 1) }, say("next word"));
  const box = { class: "ex-scrolls", tabindex: 0, role: "region",
    "aria-label": say("Heatmap") };
  const found = element("div", {}, text,
    element("p", { class: "ex-hint" },
      say("Choose a row to see its step. Press an English word to erase it: the " +
        "model reads <unk> in its place.")),
    element("div", { class: "ex-two" }, element("div", box, map),
      element("div", {}, rowByRow ? next : "", said, choices,
        element("p", {}, element("label", {}, say("another word "), other), " ",
          write, " ", again, known))));
  root.classList.add("explorer");
  keepKeys(root);
  root.replaceChildren(
    element("p", { class: "ex-ask" },
      element("label", { class: "ex-sentence" }, say("English sentence "), sentence),
      element("label", {}, say("into "), into),
      element("label", {}, say("or pick "), pick)),
    about, found);

  // --- what happens ------------------------------------------------------------------

  function type(value) {
    sentence.value = value;
    start();
  }

  function tell(...parts) {
    about.replaceChildren(...parts);
  }

  // Translate the sentence as it stands, with nothing forced or erased.
  async function start() {
    clearTimeout(sentence.pause);
    const name = into.value;
    if (!loaded.has(name)) {
      tell(say("The model is being loaded …"));
      loaded.set(name, load(name).then(readModel));
    }
    try {
      const ready = await loaded.get(name);
      if (name !== into.value) return; // another one was chosen meanwhile
      if (ready !== model) known.replaceChildren(...options(ready.target.slice(2)));
      model = ready;
    } catch (error) {
      loaded.delete(name);
      if (name !== into.value) return; // another one was chosen meanwhile
      found.hidden = true;
      return tell(say("The model can't be used: {0}.", error.message));
    }
    words = tokenize(sentence.value);
    pick.value = sentence.value;
    found.hidden = words.length < 1 || words.length > MOST_WORDS;
    if (found.hidden)
      return tell(words.length ? say("The sentence has {0} words and signs; at most " +
        "{1} have room here.", words.length, MOST_WORDS)
        : say("Type an English sentence."));
    [forced, erased, chosen] = [new Map(), new Set(), 0];
    free = model.translate(words);
    change();
    map.classList.add("ex-fresh"); // its rows appear one after the other
  }

  function change() {
    steps = model.translate(words, forced, erased);
    chosen = Math.min(chosen, steps.length - 1);
    tell(...unknown());
    draw();
  }

  // Write a word at the chosen step; what was forced after it is free again.
  function force(text_) {
    const word = text_.trim().toLowerCase();
    if (!word) return;
    if (!(model.targetIds.get(word) >= 2))
      return said.replaceChildren(
        say("The model can't write {0}: it isn't among its words.", quoted(word)));
    const earlier = [...forced].filter(([i]) => i < chosen);
    const own = steps[chosen].best[0] === model.targetIds.get(word); // nothing to force
    forced = new Map(own ? earlier : [...earlier, [chosen, word]]);
    change();
  }

  function erase(j) {
    if (!erased.delete(j)) erased.add(j);
    change();
  }

  function choose(i) {
    chosen = i;
    draw();
  }

  // Arrow keys go from row to row, and from one English word to the next.
  function moved(event) {
    const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const right = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const key = event.target.dataset.key ?? "";
    if (down && key.startsWith("row")) {
      choose(Math.max(0, Math.min(steps.length - 1, chosen + down)));
      map.querySelector(`[data-key="row${chosen}"]`).focus();
    } else if (right && key.startsWith("word")) {
      column = Math.max(0, Math.min(words.length - 1, Number(key.slice(4)) + right));
      draw();
      map.querySelector(`[data-key="word${column}"]`).focus();
    } else return;
    event.preventDefault();
  }

  // --- what is shown -----------------------------------------------------------------

  // Each word that the model doesn't know, with the nearest that it knows, to press.
  function unknown() {
    const strange = [...new Set(words.filter((word) => !model.knows(word)))];
    return strange.flatMap((word) => {
      const near = model.source.filter((one) => model.knows(one))
        .map((one) => ({ one, far: distance(word, one) }))
        .filter(({ far }) => far <= Math.max(2, word.length / 2))
        .sort((a, b) => a.far - b.far).slice(0, 3);
      const put = (one) => () =>
        type(words.map((each) => (each === word ? one : each)).join(" "));
      return [
        say("The model doesn't know {0} and reads <unk>. ", quoted(word)),
        near.length ? say("The nearest that it knows: ") : "",
        ...near.flatMap(({ one }) =>
          [element("button", { type: "button", onclick: put(one) }, one), " "]),
      ];
    });
  }

  const written = (each) =>
    each.map((step) => step.word).filter((word) => word !== "<eos>");
  const sentenceOf = (each) => detokenize(written(each), model.lang);
  const places = (list) => list.map((i) => i + 1).join(", ");

  function links() {
    const target = written(steps).join(" ");
    const source = words.join(" ");
    const { sure = [], possible = [] } = gold.find((pair) =>
      pair.source === source && pair.target === target) ?? {};
    const has = (list, i, j) => list.some(([from, to]) => from === j && to === i);
    return (i, j) =>
      has(sure, i, j) ? "sure" : has(possible, i, j) ? "possible" : "";
  }

  const glossed = (word) => glosses[word]
    ? [word, element("small", { lang: "en" }, ` ${glosses[word]}`)] : [word];

  function draw() {
    const focused = root.getRootNode().activeElement?.dataset?.key;
    const { words: newWords, rows } = differences(free, steps), link = links();
    const read = [...words.map((word, j) => (erased.has(j) ? "<unk>" : word)), "<eos>"];
    const lang = model.lang;
    const top = words.map((word, j) => element("button", {
      type: "button", lang: "en", "data-key": `word${j}`, "aria-pressed": erased.has(j),
      tabindex: j === Math.min(column, words.length - 1) ? 0 : -1,
      "aria-label": say("erase {0}", word), class: erased.has(j) && "ex-erased",
      onclick: () => erase((column = j)),
    }, word));
    const heads = [...top, "<eos>"].map((one) => element("th", { scope: "col" }, one));
    const body = steps.map((step, i) => {
      const other_ = newWords.includes(i) && free[i];
      const old = other_ ? [element("s", {}, free[i].word), " "] : [];
      const name = element("button", {
        type: "button", lang, "data-key": `row${i}`, tabindex: i === chosen ? 0 : -1,
        "aria-current": i === chosen && "step", onclick: () => choose(i),
      }, ...old, ...glossed(step.word), ...(forced.has(i) ? [say(" (forced)")] : []));
      const cells = step.weights.map((w, j) => element("td", {
        style: `--w: ${w.toFixed(3)}`, "data-gold": link(i, j) || false,
        class: w > 0.73 ? "ex-dark" : w < 0.05 ? "ex-faint" : "",
      }, number(w)));
      const changed = rows.includes(i) ? "ex-changed" : "";
      const later = rowByRow && i > chosen ? "ex-later" : "";
      const kind = `${i === chosen ? "ex-now" : ""} ${changed} ${later}`;
      return element("tr", { class: kind, style: `--i: ${i}` },
        element("th", { scope: "row" }, name), ...cells);
    });
    const { scores, weights, word, best } = steps[chosen];
    map.classList.remove("ex-fresh");
    map.classList.toggle("ex-many", read.length > 14);
    map.style.setProperty("--columns", read.length);
    map.replaceChildren(
      element("caption", {}, say("Attention weights: a row for each word that is " +
        "written, a column for each word that is read.")),
      element("thead", {}, element("tr", {}, element("td"), ...heads)),
      element("tbody", {}, ...body),
      element("tfoot", {}, element("tr", {},
        element("th", { scope: "row" }, say("scores, step {0}", chosen + 1)),
        ...scores.map((score) => element("td", {}, number(score))))));
    text.replaceChildren(
      element("span", { lang }, sentenceOf(rowByRow ? steps.slice(0, chosen + 1)
        : steps)), ...story(newWords, rows, link));
    const most = weights.indexOf(Math.max(...weights));
    said.textContent = say("Step {0} of {1} writes {2}. The largest weight, {3}, is " +
      "on {4}. The most probable words, to press:", chosen + 1, steps.length,
    quoted(word), number(weights[most]), quoted(read[most]));
    const ids = best.slice(0, CHOICES), now = model.targetIds.get(word);
    if (!ids.includes(now)) ids.push(now);
    choices.replaceChildren(...ids.map((id, k) => {
      const chance = steps[chosen].chances[id], one = model.target[id];
      return element("button", {
        type: "button", lang, "data-key": `choice${k}`, "aria-pressed": id === now,
        style: `--w: ${chance.toFixed(3)}`, onclick: () => force(one),
      }, element("span", {}, ...glossed(one)), element("span", {}, number(chance)));
    }));
    other.value = "";
    again.disabled = !forced.size && !erased.size;
    next.disabled = chosen === steps.length - 1;
    if (focused) root.querySelector(`[data-key="${focused}"]`)?.focus();
  }

  // What differs from the model left alone, and how the rows fit the gold links.
  function story(newWords, rows, link) {
    const told = [];
    if (forced.size || erased.size) told.push(
      say("Left alone, the model writes {0} ", quoted(sentenceOf(free))),
      newWords.length ? say("Other words: {0}. ", places(newWords))
        : say("No other word. "),
      rows.length ? say("The first row with other weights: {0}. ", rows[0] + 1)
        : say("The weights are the same. "));
    const linked = steps.map(({ weights }, i) => weights.map((_, j) => link(i, j)));
    const own = linked.map((row, i) => row.some(Boolean) &&
      row[steps[i].weights.indexOf(Math.max(...steps[i].weights))]);
    const any = linked.filter((row) => row.some(Boolean)).length;
    if (any) told.push(say("Frames mark the true links, dotted ones possible links: " +
      "{0} of {1} rows look most at one.", own.filter(Boolean).length, any));
    return told.length ? [element("span", { class: "ex-story" }, told.join(""))] : [];
  }

  if (sentences.length) type(sentences[0]);
  else start();
}

// What anywidget calls: the notebook sends settings and the files of the models.
export default {
  render({ model, el }) {
    const files = model.get("files");
    el.lang = model.get("lang");
    mount(el, model.get("settings"), async (name) => {
      const { buffer, byteOffset, byteLength } = files[name];
      return buffer.slice(byteOffset, byteOffset + byteLength);
    });
  },
};
