// The explorer without a kernel: draws the step that is chosen, from the page's numbers.
"use strict";

const numbers = JSON.parse(document.getElementById("ex-numbers").textContent);
const find = (name) => document.getElementById("ex-" + name);

function element(kind, text, properties = {}) {
  const made = Object.assign(document.createElement(kind), properties);
  made.textContent = text;
  return made;
}

function row(...cells) {
  const made = document.createElement("tr");
  made.append(...cells);
  return made;
}

function bars(weights) {
  const cells = weights.map((weight) => {
    const cell = element("td", "", { className: "bar" });
    const bar = element("span", weight.toFixed(2));
    bar.style.setProperty("--w", weight);
    cell.append(bar);
    return cell;
  });
  return row(element("th", "weights", { scope: "row" }), ...cells);
}

function written(step, now) {
  const cells = step.weights.map((weight) => {
    const cell = element("td", weight.toFixed(2));
    cell.style.setProperty("--w", weight);
    cell.className = weight > 0.73 ? "dark" : weight < 0.05 ? "faint" : "";
    return cell;
  });
  const made = row(element("th", step.word, { scope: "row" }), ...cells);
  made.className = now ? "now" : "";
  return made;
}

function draw() {
  const sentence = numbers[find("sentence").value];
  const count = sentence.steps.length;
  find("step").max = count;
  const i = Number(find("step").value);
  const step = sentence.steps[i - 1];
  const sources = sentence.source.map((word) => element("th", word, { scope: "col" }));
  find("map").replaceChildren(
    bars(step.weights),
    row(element("td", ""), ...sources),
    ...sentence.steps.slice(0, i).map((each, k) => written(each, k === i - 1)),
  );
  find("choices").replaceChildren(
    ...Object.entries(step.choices).map(([word, chance]) => {
      const cell = element("td", chance.toFixed(2));
      cell.style.setProperty("--w", chance);
      const made = row(element("th", word, { scope: "row" }), cell);
      made.className = word === step.word ? "now" : "";
      return made;
    }),
  );
  const best = step.weights.indexOf(Math.max(...step.weights));
  const end = i === count ? ` The translation: ${sentence.text}` : "";
  find("said").textContent =
    `Step ${i} of ${count} writes “${step.word}”. The largest weight, ` +
    `${step.weights[best].toFixed(2)}, is on “${sentence.source[best]}”.${end}`;
  find("back").disabled = i === 1;
  find("on").disabled = i === count;
}

function go(change) {
  find("step").value = Number(find("step").value) + change;
  draw();
}

find("step").addEventListener("input", draw);
find("back").addEventListener("click", () => go(-1));
find("on").addEventListener("click", () => go(1));
find("sentence").addEventListener("change", () => {
  find("step").value = 1;
  draw();
});
draw();
