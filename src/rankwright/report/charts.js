// Charts: drawn by Plotly when they come near the window, again when theme or methods change, and all before print.

const PORTRAIT = 660; // CSS pixels between the margins of A4 and of Letter
const LANDSCAPE = 940;
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
  const instead = element("p", { class: "instead" });
  const legend = legendOf(block, plot);
  const chart = { near: false, stale: true, paperWidth: null, drawnWidth: 0, block, plot };

  chart.draw = () => {
    chart.stale = false;
    say(hasVisible(chart.block) ? "" : whyHidden());
    chart.drawnWidth = chart.paperWidth ?? plot.clientWidth;
    const { data, layout } = figureOf(chart.block, { width: chart.drawnWidth });
    layout.dragmode ??= coarse.matches ? false : "zoom";
    const fresh = !plot.data;
    Plotly.react(plot, data, layout, { displayModeBar: false });
    if (fresh && clicked) plot.on("plotly_click", ({ points }) => clicked(points[0].pointIndex));
    if (fresh) plot.on("plotly_afterplot", () => nameTicks(plot, chart.block));
    nameTicks(plot, chart.block);
  };
  chart.refresh = () => {
    if (!chart.stale || !chart.near || !plot.isConnected) return;
    if (window.Plotly) chart.draw();
    else say("The chart is being drawn …");
  };
  chart.spoil = () => {
    chart.stale = true;
    chart.refresh();
  };
  chart.update = (newBlock) => {
    chart.block = newBlock;
    plot.style.height = `${newBlock.height}px`;
    plot.setAttribute("aria-label", newBlock.caption);
    chart.spoil();
  };

  function say(text) {
    instead.textContent = text;
    instead.hidden = !text;
    plot.classList.toggle("blank", Boolean(text));
  }

  plot.chart = chart;
  charts.add(chart);
  observer.observe(plot);
  resized.observe(plot);
  say("");
  const stage = element("div", { class: "stage" }, plot, instead);
  return { node: element("figure", { class: "chart" }, stage, legend), update: chart.update };
}

/** Whether a chart shows anything; traces that belong to no method always do. */
function hasVisible({ data }) {
  return data.length === 0 || data.some(({ method }) => method === undefined || isShown(method));
}

/** Show the full text of shortened tick labels when the reader points at them. */
function nameTicks(plot, block) {
  for (const axis of ["x", "y"]) {
    const full = new Map([...longLabels(block, `${axis}axis`)].map(([label, short]) => [short, label]));
    for (const tick of full.size ? plot.querySelectorAll(`.${axis}tick text`) : []) {
      const label = full.get(tick.textContent);
      if (label === undefined) continue;
      tick.style.pointerEvents = "all";
      tick.append(drawing("title", {}, label));
    }
  }
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
  loadPlotly();
  const { data, layout } = figureOf(block, {
    width: 960, height: block.height + 120, paper_bgcolor: themed("var(--paper)"),
    showlegend: block.layout.showlegend ?? true, legend: { orientation: "h", y: -0.2 },
  });
  Plotly.downloadImage({ data, layout }, { format: "png", scale: 2, filename: fileName(block.caption) });
}

function fileName(caption) {
  return caption.toLowerCase().match(/[a-z0-9]+/g)?.slice(0, 8).join("-") ?? "chart";
}

/** Draw visible charts at once, and nearby ones in a task each, so that the page responds. */
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

/** Draw everything in the width of paper and in light colours for printing, and restore it afterwards. */
function setUpPrint() {
  const redraw = (printing) => {
    if (printing === ("printing" in root.dataset)) return;
    if (printing) root.dataset.printing = "";
    else delete root.dataset.printing;
    fitTables(printing);
    for (const chart of charts) chart.paperWidth = printing ? paperWidth(chart.plot) : null;
    if (printing) loadPlotly();
    themeChanged();
    if (!printing) return;
    for (const chart of charts) if (chart.stale && chart.plot.isConnected) chart.draw();
  };
  addEventListener("beforeprint", () => redraw(true));
  addEventListener("afterprint", () => redraw(false));
  matchMedia("print").addEventListener("change", (event) => redraw(event.matches));
}

/** Sections with wide tables are printed on landscape pages, see print.css. */
function paperWidth(node) {
  return node.closest("section")?.querySelector(".grid.wide") ? LANDSCAPE : PORTRAIT;
}

/** Tables that are wider than paper are made smaller. */
function fitTables(printing) {
  for (const table of document.querySelectorAll(".scroll > table")) {
    const width = paperWidth(table);
    table.parentElement.style.width = printing ? `${width}px` : "";
    table.style.zoom = printing ? Math.min(1, width / table.offsetWidth) : "";
  }
}

/** Load Plotly's script late, from text: the browser needs a second or two for it, without responding. */
function loadPlotly() {
  if (window.Plotly) return;
  const source = document.getElementById("plotly");
  source.replaceWith(element("script", {}, textOf(source)));
}

/** Call back when everything has been painted and the reader is idle. */
function whenIdle(action) {
  const later = window.requestIdleCallback ?? setTimeout;
  requestAnimationFrame(() => setTimeout(() => later(action)));
}

function setUpCharts() {
  document.addEventListener("DOMContentLoaded", () => whenIdle(() => {
    loadPlotly();
    spoilAll();
  }));
  onTheme(() => spoilAll());
  onMethods(oncePerFrame(() => spoilAll(hasMethods)));
  setUpPrint();
}
