// A prediction that is drawn: the reader draws, and then sees what was measured.
// It runs on a page of the site and, through anywidget, in a notebook.
import { element, keepKeys } from "./element.js";
import { speaker } from "./words.js";

const HOW = {
  curve: "Drag across the columns to draw your curve, or use Tab and the arrow keys.",
  shares: "Drag each bar up, or use Tab and the arrow keys. The bars share out 1.",
  heatmap: "Choose in each row the square that you expect to be darkest: press it, " +
    "drag down the rows, or use Tab, Space and the arrow keys.",
};
const darkest = (row) => row.indexOf(Math.max(...row));

// The error of a finished drawing, and what differs, in words. drawn: the values of a
// curve (0 to 100), the shares of 1, or the column chosen in each row of a heatmap.
function judged({ kind, columns, rows, answer }, drawn, say) {
  const differs = "{0}: you {1}, measured {2}";
  if (kind === "heatmap") {
    const right = answer.map(darkest);
    const wrong = rows.flatMap((row, i) => drawn[i] === right[i] ? []
      : say(differs, row, columns[drawn[i]], columns[right[i]]));
    return say("The darkest square is right in {0} of {1} rows.",
      rows.length - wrong.length, rows.length) +
      (wrong.length ? say(" The others: {0}.", wrong.join(say("; "))) : "");
  }
  const sum = drawn.reduce((total, v, k) => total + Math.abs(v - answer[k]), 0);
  const number = (x) => x.toFixed(kind === "curve" ? 0 : 2);
  const told = columns.map((name, k) =>
    say(differs, name, number(drawn[k]), number(answer[k])));
  return (kind === "curve"
    ? say("On average, your curve is {0} BLEU away. ", (sum / drawn.length).toFixed(1))
    : say("The differences add up to {0}. ", sum.toFixed(2))) +
    told.join(say("; ")) + say(".");
}

// Put a drawing into an element. settings: { kind, columns, rows, answer, axes,
// measured }, as `drawing` in explorer.py says. Nothing of the answer is there before all is drawn.
export function mount(root, settings) {
  const say = speaker(root);
  const { kind, columns, rows, answer, axes, measured } = settings;
  const unit = kind === "shares" ? 0.01 : 1; // heights are whole numbers, 0 to 100
  const number = (v) => (v * unit).toFixed(kind === "shares" ? 2 : 0);
  let drawn, done; // drawn: a height, or a column; undefined where nothing is yet
  const button = (name, onclick) =>
    element("button", { type: "button", onclick }, name);
  const part = kind === "heatmap" ? table() : plot();
  const show = button(say("show what was measured"), () => change(true));
  const again = button(say("draw again"), start);
  const large = button(say("fill the screen"), () => document.fullscreenElement
    ? document.exitFullscreen() : root.requestFullscreen());
  const said = element("p", { role: "status" });
  root.classList.add("explorer", "draw");
  keepKeys(root);
  root.replaceChildren(element("p", {}, say(HOW[kind])), part.root,
    element("p", {}, show, again, document.fullscreenEnabled ? large : ""), said);
  start();

  function start() {
    drawn = Array((kind === "heatmap" ? rows : columns).length);
    drawn.fill(kind === "shares" ? 0 : undefined);
    change();
  }

  function missing() { // what is still to be drawn, in words
    const left = 100 - drawn.reduce((a, b) => a + b, 0);
    if (kind === "shares")
      return left && say("{0} is left to share out.", number(left));
    const there = drawn.filter((v) => v !== undefined).length;
    return there < drawn.length && say("{0} of {1} are drawn.", there, drawn.length);
  }

  function change(finished = false) {
    done = finished;
    root.classList.toggle("dr-done", done);
    [show.hidden, show.disabled, again.hidden] = [done, Boolean(missing()), !done];
    const text = done ? judged(settings, drawn.map((v) => v * unit), say)
      : missing() || say("All is drawn.");
    if (said.textContent !== text) said.textContent = text; // it is read aloud
    part.draw();
    if (done) again.focus(); // the button that was pressed is gone
  }

  function set(k, v) {
    const others = drawn.reduce((sum, other, j) => sum + (j === k ? 0 : other), 0);
    drawn[k] = kind === "shares" ? Math.min(v, 100 - others) : v;
    change();
  }

  // --- columns with a height: a curve, or bars -------------------------------------

  function plot() {
    const inputs = columns.map((_, k) => element("input", {
      type: "range", min: 0, max: 100, oninput: () => set(k, Number(inputs[k].value)),
    }));
    const [yours, its] = ["dr-yours", "dr-its"].map((name) => columns.map(() =>
      element("span", { class: `dr-mark ${name}`, "aria-hidden": true })));
    const ticks = [0, 25, 50, 75, 100].map((v) => element("span",
      { class: "dr-tick", style: `--v: ${v}`, "aria-hidden": true }, number(v)));
    const lines = element("div", { class: "dr-lines", "aria-hidden": true });
    const area = element("div", { class: "dr-area", role: "group",
      "aria-label": say(axes), onpointerdown: pointer, onpointermove: pointer },
    ...ticks, lines,
    ...columns.map((name, k) => element("label", {}, inputs[k], yours[k], its[k],
      element("span", { class: "dr-name" }, name))));
    let last; // the column and height where the pointer was

    function at({ clientX, clientY }) {
      const { left, width, bottom, height } = area.getBoundingClientRect();
      const whole = (x, most) => Math.max(0, Math.min(most, Math.round(x)));
      return [whole((clientX - left) / width * columns.length - 0.5,
        columns.length - 1), whole((bottom - clientY) / height * 100, 100)];
    }

    // A fast hand passes columns between two events: they get what lies between.
    function pointer(event) {
      if (event.type === "pointerdown") {
        area.setPointerCapture(event.pointerId);
        last = at(event);
      }
      if (done || !area.hasPointerCapture(event.pointerId)) return;
      const [from, old] = last, [to, v] = at(event);
      if (kind === "shares") return set(from, v);
      const steps = Math.abs(to - from), way = Math.sign(to - from);
      for (let j = 1; j < steps; j++)
        set(from + j * way, Math.round(old + (v - old) * j / steps));
      set(to, v);
      last = [to, v];
    }

    function draw() {
      const measures = done ? answer.map((v) => v / unit) : [];
      const line = (heights, name) => `<polyline class="${name}" points="${
        columns.map((_, k) => heights[k] === undefined ? ""
          : `${(k + 0.5) / columns.length * 100},${100 - heights[k]}`).join(" ")}"/>`;
      if (kind === "curve") lines.innerHTML = `<svg viewBox="0 0 100 100"
        preserveAspectRatio="none">${
        line(drawn, "dr-yours")}${line(measures, "dr-its")}</svg>`;
      columns.forEach((_, k) => {
        for (const [mark, v] of [[yours[k], drawn[k]], [its[k], measures[k]]]) {
          mark.style.setProperty("--v", v ?? 0);
          mark.dataset.v = v === undefined ? "" : number(v);
        }
        inputs[k].value = drawn[k] ?? 0;
        inputs[k].disabled = done;
        inputs[k].setAttribute("aria-valuetext",
          yours[k].dataset.v || say("not drawn"));
      });
    }
    return { draw, root: element("div", { class: `dr-plot dr-${kind}` },
      element("p", { class: "dr-key" }, element("b", {}, say(axes)),
        element("span", { class: "dr-yours" }, say("your guess")),
        element("span", { class: "dr-its" }, say(measured))), area) };
  }

  // --- a heatmap: one square in each row --------------------------------------------

  function table() {
    const named = `dr-${Math.random()}`;
    const cells = rows.map((row, i) => columns.map((column, j) => {
      const choose = ({ buttons, pointerType }) => { // a finger scrolls the page
        if (!done && buttons & 1 && pointerType === "mouse") set(i, j);
      };
      return element("td", { onpointerdown: choose, onpointerenter: choose },
        element("input", { type: "radio", name: `${named}-${i}`,
          "aria-label": `${row}: ${column}`, onchange: () => set(i, j) }),
        element("span"));
    }));
    function draw() {
      cells.forEach((row, i) => row.forEach((cell, j) => {
        const w = done ? answer[i][j] : 0;
        cell.style.setProperty("--w", w);
        cell.classList.toggle("ex-dark", w > 0.73);
        cell.firstChild.checked = drawn[i] === j;
        cell.firstChild.disabled = done;
        cell.lastChild.textContent = done ? w.toFixed(2) : "";
      }));
    }
    const style = `--columns: ${columns.length}`;
    const head = (scope) => (word) => element("th", { scope }, word);
    const body = cells.map((row, i) => element("tr", {}, head("row")(rows[i]), ...row));
    const top = element("tr", {}, element("td"), ...columns.map(head("col")));
    return { draw, root: element("table", { class: "ex-map", style },
      element("caption", {}, say(axes)), element("thead", {}, top),
      element("tbody", {}, ...body)) };
  }
}

export default {
  render({ model, el }) {
    el.lang = model.get("lang");
    mount(el, model.get("settings"));
  },
};
