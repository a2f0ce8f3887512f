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

/** Options are drawn when they are first chosen, and kept. */
function choiceBlock({ label, options }) {
  const made = new Map();
  const place = element("div");
  const show = (index) => {
    if (!made.has(index)) made.set(index, drawn(options[index].block));
    place.replaceChildren(made.get(index));
  };
  show(0);
  const names = options.map(({ name }) => name);
  return element("div", { class: "choice" }, element("div", { class: "controls" }, select(label, names, 0, show)), place);
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
for (const node of document.querySelectorAll(".block")) {
  node.replaceChildren(drawn(JSON.parse(node.firstElementChild.textContent)));
}
setUpNavigation();
