// Charts: drawn by Plotly when they come near the window, again when theme or methods change, and all before print.

const PRINT_WIDTH = 660; // CSS pixels between the margins of A4 and of Letter
const charts = new Set();

const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    entry.target.chart.near = entry.isIntersecting;
    entry.target.chart.refresh();
  }
}, { rootMargin: "500px 0px" });

const coarse = matchMedia("(pointer: coarse)");

const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) if (target.chart.drawnWidth !== target.clientWidth) target.chart.spoil();
});

/** A chart: { node, update(block) }; `clicked` gets the index of a point. */
function makeChart(block, { clicked = null } = {}) {
  const plot = element("div", { class: "plot", role: "img", "aria-label": block.caption });
  plot.style.height = `${block.height}px`;
  const legend = legendOf(block, plot);
  const chart = { near: false, stale: true, paperWidth: null, drawnWidth: 0, block, plot };

  chart.draw = () => {
    chart.stale = false;
    chart.drawnWidth = chart.paperWidth ?? plot.clientWidth;
    const { data, layout } = figureOf(chart.block, { width: chart.drawnWidth });
    layout.dragmode ??= coarse.matches ? false : "zoom";
    const fresh = !plot.data;
    Plotly.react(plot, data, layout, { displayModeBar: false });
    if (fresh && clicked) plot.on("plotly_click", ({ points }) => clicked(points[0].pointIndex));
  };
  chart.refresh = () => {
    if (chart.stale && chart.near && plot.isConnected && window.Plotly) chart.draw();
  };
  chart.spoil = () => {
    chart.stale = true;
    chart.refresh();
  };
  chart.update = (newBlock) => {
    chart.block = newBlock;
    plot.setAttribute("aria-label", newBlock.caption);
    chart.spoil();
  };

  plot.chart = chart;
  charts.add(chart);
  observer.observe(plot);
  resized.observe(plot);
  return { node: element("figure", { class: "chart" }, plot, legend), update: chart.update };
}

/** Names and strokes below the chart; pointing at one brings its lines forward, a click switches its method. */
function legendOf(block, plot) {
  const entries = new Map();
  for (const { trace, look, method, name } of seriesOf(block.data)) {
    const listed = trace.showlegend !== false && trace.type !== "heatmap" && name;
    if (listed && !entries.has(name)) entries.set(name, { look, method, name });
  }
  if (block.layout.showlegend === false || entries.size < 2) return null;
  return element("ul", { class: "legend" }, ...[...entries.values()].map((entry) => legendItem(entry, block, plot)));
}

function legendItem({ look, method, name }, block, plot) {
  if (method === undefined) {
    return element("li", {}, element("span", { class: "chip" }, swatch(look), element("span", {}, name)));
  }
  const item = methodButton(method, name, look);
  item.addEventListener("pointerenter", () => bringForward(plot, block, method));
  item.addEventListener("pointerleave", () => bringForward(plot, block, null));
  return element("li", {}, item);
}

function bringForward(plot, block, method) {
  if (!plot.data) return;
  const opacity = block.data.map((trace) => (method === null || trace.method === method ? trace.opacity ?? 1 : 0.12));
  Plotly.restyle(plot, { opacity });
}

function chartBlock(block) {
  const { node } = makeChart(block);
  const name = element("figcaption", { id: freshId("caption") }, block.caption);
  node.setAttribute("aria-labelledby", name.id);
  const save = button("Save as image", () => saveImage(block), { class: "link" });
  const numbers = element("details", { class: "numbers" }, element("summary", {}, "Show data"));
  numbers.addEventListener("toggle", () => {
    if (!numbers.open || numbers.childElementCount > 1) return;
    numbers.append(makeGrid(numbersOf(block), { label: block.caption }).node);
  });
  node.append(name, element("div", { class: "extras" }, numbers, save));
  return node;
}

function saveImage(block) {
  const { data, layout } = figureOf(block, {
    width: 960, height: block.height + 120, paper_bgcolor: themed("var(--paper)"),
    showlegend: block.layout.showlegend ?? true, legend: { orientation: "h", y: -0.2 },
  });
  Plotly.downloadImage({ data, layout }, { format: "png", scale: 2, filename: fileName(block.caption) });
}

function fileName(caption) {
  return caption.toLowerCase().match(/[a-z0-9]+/g)?.slice(0, 8).join("-") ?? "chart";
}

/** What the reader sees is drawn at once; what is only near, each in a task of its own, so that the page responds. */
function spoilAll(concerned = () => true) {
  for (const chart of charts) {
    if (!concerned(chart)) continue;
    chart.stale = true;
    if (isInView(chart.plot)) chart.refresh();
    else setTimeout(chart.refresh);
  }
}

function isInView(node) {
  const { top, bottom } = node.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}

function hasMethods({ block }) {
  return block.data.some((trace) => trace.method !== undefined);
}

/** Everything that is on the page, in the width of paper and in light colours; and back. */
function setUpPrint() {
  const redraw = (printing) => {
    if (printing === ("printing" in root.dataset)) return;
    if (printing) root.dataset.printing = "";
    else delete root.dataset.printing;
    fitTables(printing);
    for (const chart of charts) chart.paperWidth = printing ? PRINT_WIDTH : null;
    themeChanged();
    if (!printing) return;
    for (const chart of charts) if (chart.stale && chart.plot.isConnected) chart.draw();
  };
  addEventListener("beforeprint", () => redraw(true));
  addEventListener("afterprint", () => redraw(false));
  matchMedia("print").addEventListener("change", (event) => redraw(event.matches));
}

/** Tables that are wider than paper are made smaller. */
function fitTables(printing) {
  for (const table of document.querySelectorAll(".scroll > table")) {
    table.parentElement.style.width = printing ? `${PRINT_WIDTH}px` : "";
    table.style.zoom = printing ? Math.min(1, PRINT_WIDTH / table.offsetWidth) : "";
  }
}

function setUpCharts() {
  // Plotly is large and comes last, so that tables do not wait for it.
  document.addEventListener("DOMContentLoaded", () => spoilAll());
  onTheme(() => spoilAll());
  onMethods(oncePerFrame(() => spoilAll(hasMethods)));
  setUpPrint();
}
