// Elements, numbers and text.

const SVG = "http://www.w3.org/2000/svg";
const MISSING = "–";

/** An element with attributes and children; text children become text nodes, never markup. */
function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function drawing(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

function button(label, action, attributes = {}) {
  const node = element("button", { type: "button", ...attributes }, label);
  node.addEventListener("click", action);
  return node;
}

/** A labelled select; `changed` gets the index of the option. */
function select(label, names, chosen, changed) {
  const options = names.map((name, index) => element("option", { value: index, selected: index === chosen }, name));
  const node = element("select", {}, ...options);
  node.addEventListener("change", () => changed(Number(node.value)));
  return element("label", { class: "select" }, element("span", {}, label), node);
}

/** A number or text as readers see it: a true minus sign, and a dash for a missing value. */
function shown(value, digits = null) {
  if (value === null || value === undefined) return MISSING;
  if (typeof value !== "number") return String(value);
  const text = digits === null ? String(value) : value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

function signed(value, digits) {
  const text = shown(value, digits);
  return value > 0 && Number(value.toFixed(digits)) > 0 ? `+${text}` : text;
}

function counted(number, noun, nouns = `${noun}s`) {
  return `${number} ${number === 1 ? noun : nouns}`;
}

let lastId = 0;
function freshId(stem) {
  lastId += 1;
  return `${stem}-${lastId}`;
}

/** Call at most once per frame. */
function oncePerFrame(action) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      action();
    });
  };
}
