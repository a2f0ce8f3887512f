// Methods: the look of each one, and the choice of those that are shown.

const COLOURS = 8;
const DASHES = ["solid", "dash", "dot", "dashdot"];
const STROKES = { solid: "none", dash: "5 3", dot: "1.5 2.5", dashdot: "5 2 1.5 2" };
const PATTERNS = ["", "/", "x", "."];
const MARKERS = ["circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "star", "pentagon"];

const methods = JSON.parse(document.getElementById("page-methods").textContent);
const methodNumbers = new Map(methods.map((name, number) => [name, number]));
const hiddenMethods = new Set();
const methodListeners = [];

function onMethods(listener) {
  methodListeners.push(listener);
}

/** Eight colours; after them the same colours with another dash, another marker and another pattern. */
function lookOf(number) {
  const round = Math.floor(number / COLOURS);
  return {
    colour: `var(--method-${number % COLOURS})`,
    dash: DASHES[round % DASHES.length],
    symbol: MARKERS[number % MARKERS.length] + (round % 2 ? "-open" : ""),
    pattern: PATTERNS[round % PATTERNS.length],
  };
}

function lookOfMethod(name) {
  return lookOf(methodNumbers.get(name));
}

function isShown(name) {
  return !hiddenMethods.has(name);
}

function showMethods(names) {
  hiddenMethods.clear();
  for (const name of methods) if (!names.includes(name)) hiddenMethods.add(name);
  for (const listener of methodListeners) listener();
}

/** The text for a block whose methods are all hidden. */
function whyHidden() {
  return hiddenMethods.size === methods.length ? "All methods are hidden." : "Everything here belongs to a hidden method.";
}

function toggleMethod(name) {
  showMethods(methods.filter((other) => (other === name) !== isShown(other)));
}

/** A small picture of a trace; a method by itself is a line with a marker. */
function swatch(look) {
  return drawing("svg", { class: "swatch", viewBox: "0 0 24 12", width: 24, height: 12, "aria-hidden": "true" },
    ...FORMS[look.form ?? "lines+markers"](look));
}

const FORMS = {
  "lines+markers": (look) => [stroke(look), marker(look)],
  lines: (look) => [stroke(look)],
  markers: (look) => [marker(look)],
  filled: ({ colour, pattern }) => [
    drawing("rect", { x: 7, y: 1, width: 10, height: 10, fill: colour }),
    drawing("path", { d: HATCHES[pattern], stroke: "var(--paper)", "stroke-width": 1.2, "stroke-linecap": "round" }),
  ],
  outlined: ({ colour }) => [
    drawing("rect", { x: 7.75, y: 1.75, width: 8.5, height: 8.5, fill: "none", stroke: colour, "stroke-width": 1.5 }),
  ],
};

const HATCHES = {
  "": "",
  "/": "M7 6l5-5M7 11l10-10M12 11l5-5",
  x: "M7 6l5-5M7 11l10-10M12 11l5-5M7 6l5 5M7 1l10 10M12 1l5 5",
  ".": "M9.5 3.5h.01M14.5 3.5h.01M9.5 8.5h.01M14.5 8.5h.01",
};

function stroke({ colour, dash }) {
  return drawing("line", {
    x1: 1, x2: 23, y1: 6, y2: 6, stroke: colour, "stroke-width": 2, "stroke-dasharray": STROKES[dash] ?? "none",
  });
}

const SHAPES = {
  circle: "M12 2.6a3.4 3.4 0 1 0 0 6.8a3.4 3.4 0 1 0 0-6.8z",
  square: "M9 3h6v6h-6z",
  diamond: "M12 1.8l4.2 4.2l-4.2 4.2l-4.2-4.2z",
  "triangle-up": "M12 2l4 7h-8z",
  "triangle-down": "M12 10l4-7h-8z",
  cross: "M10.7 2h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z",
  star: "M12 1.2l1.2 3.3h3.5l-2.8 2.1l1.1 3.4l-3-2.1l-3 2.1l1.1-3.4l-2.8-2.1h3.5z",
  pentagon: "M12 2l4 2.9l-1.5 4.7h-5l-1.5-4.7z",
};

function marker({ symbol, colour }) {
  const open = symbol.endsWith("-open");
  return drawing("path", {
    d: SHAPES[symbol.replace("-open", "")] ?? SHAPES.circle,
    fill: open ? "var(--paper)" : colour, stroke: colour, "stroke-width": open ? 1.4 : 0,
  });
}

/** A switch for one method. A chart may know the method by another label, and draw it otherwise. */
function methodButton(method, label = method, look = lookOfMethod(method)) {
  const node = button("", () => toggleMethod(method), { class: "chip" });
  node.append(swatch(look), element("span", {}, label));
  const update = () => node.setAttribute("aria-pressed", String(isShown(method)));
  onMethods(update);
  update();
  return node;
}

/** The switch for the whole page: beside the text where there is room, folded into the bar where there is not. */
function setUpMethods() {
  const box = document.getElementById("methods");
  if (methods.length < 2) return;
  const all = button("All", () => showMethods(methods), { class: "link" });
  const none = button("None", () => showMethods([]), { class: "link" });
  box.append(
    element("div", { class: "all-none" }, all, none),
    element("div", { class: "chips" }, ...methods.map((name) => methodButton(name))),
  );
  const update = () => {
    const visible = methods.length - hiddenMethods.size;
    box.querySelector("output").textContent = `${visible} of ${methods.length}`;
  };
  onMethods(update);
  update();
  const roomy = matchMedia("(min-width: 70rem)");
  const fold = () => {
    box.open = roomy.matches;
  };
  roomy.addEventListener("change", fold);
  fold();
  box.hidden = false;
}
