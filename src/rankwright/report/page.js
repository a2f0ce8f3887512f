// The page: draws every block by its kind. A new kind of block is a function here.

const KINDS = {
  text: textBlock,
  chart: chartBlock,
  grid: (block) => makeGrid(block).node,
  choice: choiceBlock,
  duel: duelBlock,
};

function drawn(block) {
  return KINDS[block.kind](block);
}

function textBlock({ paragraphs, level }) {
  const node = element("div", { class: `text ${level}` }, ...paragraphs.map((text) => element("p", {}, text)));
  if (level !== "plain") node.setAttribute("role", "note");
  return node;
}

function choiceBlock(block) {
  const { selects, content } = choiceOf(block);
  return element("div", { class: "choice" }, element("div", { class: "controls" }, ...selects), content);
}

/** The select of a choice with those of the choices inside it, for one line; and the chosen block. */
function choiceOf({ label, options }) {
  const made = new Map(); // options are drawn when they are first chosen, and kept
  const inner = element("div", { class: "inner" });
  const content = element("div");
  const show = (index) => {
    if (!made.has(index)) made.set(index, optionOf(options[index].block));
    inner.replaceChildren(...made.get(index).selects);
    content.replaceChildren(made.get(index).content);
  };
  show(0);
  return { selects: [select(label, options.map(({ name }) => name), 0, show), inner], content };
}

function optionOf(block) {
  return block.kind === "choice" ? choiceOf(block) : { selects: [], content: drawn(block) };
}

/** Draw the blocks of a section when it is opened for the first time; a link to a folded section opens it. */
function setUpSections() {
  for (const details of document.querySelectorAll("main > section > details")) {
    const draw = () => {
      for (const node of details.querySelectorAll(".block:has(> script)")) {
        node.replaceChildren(drawn(JSON.parse(textOf(node.firstElementChild))));
      }
    };
    if (details.open) draw();
    else {
      details.addEventListener("toggle", () => {
        draw();
        spoilAll(({ plot }) => details.contains(plot));
      }, { once: true });
    }
  }
  const openTarget = () => {
    const details = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.querySelector("details");
    if (details) details.open = true;
  };
  addEventListener("hashchange", openTarget);
  openTarget();
}

/** Marks the section that is being read in the navigation. */
function setUpNavigation() {
  const links = new Map([...document.querySelectorAll(".rail nav a")].map((link) => [link.hash.slice(1), link]));
  const reading = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const link = links.get(target.id);
      if (!isIntersecting) link.removeAttribute("aria-current");
      else {
        link.setAttribute("aria-current", "true");
        link.closest("nav").scrollLeft = link.offsetLeft - 16; // where the links are one long line
      }
    }
  }, { rootMargin: "-25% 0px -74% 0px" });
  for (const section of document.querySelectorAll("main > section")) reading.observe(section);
}

setUpTheme();
setUpMethods();
setUpCharts();
setUpSections();
setUpNavigation();
