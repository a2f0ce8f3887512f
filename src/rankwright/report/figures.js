// Figures: Plotly's figures from the traces and the layout of a block, in the page's colours.

const LITERAL = ["name", "x", "y", "z", "text", "hovertext", "labels", "customdata", "categoryarray", "ticktext"];

const ENTITIES = { "&": "&amp;", "<": "&lt;", "$": "&#36;", "\n": "<br>" };

/** Plotly reads markup and TeX in text; in names, data and titles they stand for themselves, as do line ends. */
function literal(value) {
  if (typeof value === "string") return value.replace(/[&<$\n]/g, (sign) => ENTITIES[sign]);
  return Array.isArray(value) ? value.map(literal) : value;
}

/** A copy with the theme's colours, and with names and data as they are written. */
function prepare(value, key = "") {
  if (typeof value === "string" && value.startsWith("var(--")) return themed(value);
  if (LITERAL.includes(key) && (typeof value === "string" || Array.isArray(value))) return literal(value);
  if (Array.isArray(value)) return value.map((item) => prepare(item));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, prepare(item, name)]));
}

/** The traces with their looks: `{ trace, look, method, name }`. Traces of no method are grey at first. */
function seriesOf(data) {
  let others = 0;
  return data.map(({ method, ...trace }) => {
    const look = method === undefined ? lookOf(others++) : lookOfMethod(method);
    if (method === undefined && others === 1) look.colour = "var(--muted)";
    look.colour = ownColour(trace) ?? look.colour;
    look.dash = trace.line?.dash ?? look.dash;
    if (typeof trace.marker?.symbol === "string") look.symbol = trace.marker.symbol;
    look.form = formOf(trace);
    return { trace, look, method, name: trace.name ?? method ?? "" };
  });
}

/** Which swatch looks like the trace. */
function formOf({ type = "scatter", mode = "lines+markers" }) {
  if (type === "bar" || type === "histogram") return "filled";
  if (type === "box" || type === "violin") return "outlined";
  return mode in FORMS ? mode : "lines+markers";
}

function ownColour({ line, marker }) {
  return [line?.color, marker?.color].find((colour) => typeof colour === "string");
}

/** Looks by the type of trace; settings of the trace itself are kept. */
const DRESSES = {
  scatter: ({ colour, dash, symbol }) => ({
    line: { color: colour, dash }, marker: { color: colour, symbol }, error_x: { color: colour }, error_y: { color: colour },
  }),
  bar: ({ colour, pattern }) => ({
    marker: { color: colour, pattern: { shape: pattern, fillmode: "overlay", fgcolor: "var(--paper)", size: 6, solidity: 0.25 } },
    error_x: { color: "var(--ink)" }, error_y: { color: "var(--ink)" },
  }),
  box: ({ colour }) => ({ line: { color: colour }, marker: { color: colour }, fillcolor: "transparent" }),
  violin: ({ colour }) => ({ line: { color: colour }, marker: { color: colour }, fillcolor: "transparent" }),
  histogram: ({ colour }) => ({ marker: { color: colour } }),
  heatmap: () => ({}),
};

/** The colour of an area around a line. */
function faint(colour) {
  return themed(colour).replace("rgb(", "rgba(").replace(")", ", 0.14)");
}

function dressed({ trace, look, name }) {
  const dress = DRESSES[trace.type ?? "scatter"](look);
  if (trace.fill) dress.fillcolor = faint(look.colour);
  return prepare(merged(onlyWhere(dress, trace), fullOnHover({ ...trace, name })));
}

const LONGEST = 28; // characters of a tick label

/** A long label without its middle: names mostly differ at an end. */
function shortened(text) {
  const signs = [...text];
  if (signs.length <= LONGEST) return text;
  const half = (LONGEST - 2) / 2;
  return `${signs.slice(0, half + 1).join("")}…${signs.slice(-half).join("")}`;
}

/** The long labels of an axis, which are its categories, each with its short form. */
function longLabels({ data, layout }, axis) {
  const values = [...data.flatMap((trace) => trace[axis[0]] ?? []), ...(layout[axis]?.ticktext ?? [])];
  const labels = new Set(values.filter((value) => typeof value === "string"));
  return new Map([...labels].map((label) => [label, shortened(label)]).filter(([label, short]) => label !== short));
}

/** An axis of the layout with short labels: those given, and those that Plotly makes of categories. */
function axisOf(block, axis) {
  const own = block.layout[axis] ?? {};
  const labels = longLabels(block, axis);
  if (labels.size === 0) return prepare(own);
  const short = own.ticktext ? { ...own, ticktext: own.ticktext.map(shortened) } : own;
  return { ...prepare(short), labelalias: Object.fromEntries([...labels].map((pair) => pair.map(literal))) };
}

/** Plotly also shortens labels of points, unless they come from the data of the point. */
function fullOnHover(trace) {
  const letter = ["x", "y"].find((name) => trace.hovertemplate?.includes(`%{${name}}`) && haveLong(trace[name]));
  if (letter === undefined || trace.customdata || trace.type === "heatmap") return trace;
  const hovertemplate = trace.hovertemplate.replaceAll(`%{${letter}}`, "%{customdata}");
  return { ...trace, customdata: trace[letter], hovertemplate };
}

function haveLong(values) {
  return (values ?? []).some((value) => typeof value === "string" && shortened(value) !== value);
}

/** Error bars of a trace that has none would be drawn as its own. */
function onlyWhere({ error_x, error_y, ...dress }, trace) {
  if (trace.error_x) dress.error_x = error_x;
  if (trace.error_y) dress.error_y = error_y;
  return dress;
}

function merged(defaults, own) {
  const result = { ...defaults, ...own };
  for (const [key, value] of Object.entries(defaults)) {
    const both = isObject(value) && isObject(own[key]);
    if (both) result[key] = merged(value, own[key]);
  }
  return result;
}

function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/** The style of every chart, as a Plotly template. */
function template() {
  const axis = {
    automargin: true, gridcolor: "var(--line)", zerolinecolor: "var(--strong-line)", linecolor: "var(--strong-line)",
    zerolinewidth: 1, tickfont: { color: "var(--muted)", size: 12 }, ticklen: 4, tickcolor: "transparent",
    title: { font: { color: "var(--muted)", size: 12.5 }, standoff: 10 },
  };
  const scale = [[0, "var(--paper)"], [1, "var(--accent)"]];
  const bar = { thickness: 10, outlinewidth: 0, tickfont: { color: "var(--muted)" } };
  return prepare({
    data: {
      scatter: [{ line: { width: 1.8 }, marker: { size: 7 } }],
      bar: [{ marker: { line: { width: 0 } } }],
      heatmap: [{ colorscale: scale, colorbar: bar, xgap: 1, ygap: 1 }],
    },
    layout: {
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: "var(--ink)" },
      paper_bgcolor: "transparent", plot_bgcolor: "transparent",
      margin: { l: 48, r: 12, t: 12, b: 32 },
      xaxis: axis, yaxis: axis,
      hoverlabel: { bgcolor: "var(--raised)", bordercolor: "var(--strong-line)", font: { color: "var(--ink)", size: 12.5 }, namelength: 40 },
      hovermode: "closest", bargap: 0.25, bargroupgap: 0.05,
      colorscale: { sequential: scale, diverging: [[0, "var(--worse)"], [0.5, "var(--paper)"], [1, "var(--better)"]] },
    },
  });
}

/** The whole figure; `changes` are changes of its layout: the width, or settings of a saved image. */
function figureOf(block, changes) {
  const series = seriesOf(block.data);
  const data = series.map((one) => ({
    ...dressed(one), visible: one.method === undefined || isShown(one.method) ? one.trace.visible ?? true : false,
  }));
  const layout = {
    ...prepare(block.layout), xaxis: axisOf(block, "xaxis"), yaxis: axisOf(block, "yaxis"), template: template(), height: block.height, autosize: false, showlegend: false, ...changes,
  };
  return { data, layout };
}

/** The numbers behind a chart, as a grid's columns and rows. */
function numbersOf({ data, layout }) {
  const rows = seriesOf(data).filter(({ trace }) => !trace.fill).flatMap(({ trace, name, method }) => {
    const points = (POINTS[trace.type] ?? pointsOf)(trace);
    return points.map((cells) => ({ cells: [trace.meta ?? name, ...cells], methods: method === undefined ? [] : [method] }));
  });
  const title = (axis, fallback) => Object.keys(layout).filter((key) => key.startsWith(axis))
    .map((key) => layout[key].title?.text).find(Boolean) ?? fallback;
  const names = ["series", title("xaxis", "x"), title("yaxis", "y"), "value", "from", "to"];
  const used = names.map((_, index) => rows.some(({ cells }) => (cells[index] ?? "") !== ""));
  const keep = (items) => items.filter((_, index) => used[index]);
  return {
    columns: keep(names).map((name) => ({ name })),
    rows: rows.map(({ cells, methods }) => ({ cells: keep(names.map((_, index) => cells[index] ?? null)), methods })),
  };
}

const POINTS = { heatmap: cellsOf, box: boxesOf };

/** The median and the quartiles of a box that was computed before, or the values that it is made of. */
function boxesOf(trace) {
  if (trace.q1 === undefined) return pointsOf(trace);
  return trace.q1.map((low, index) => [null, trace.y?.[index] ?? null, trace.median[index], low, trace.q3[index]]);
}

function cellsOf({ x, y, z }) {
  return z.flatMap((line, row) => line.map((value, column) => [x?.[column] ?? column, y?.[row] ?? row, value]));
}

function pointsOf(trace) {
  const length = Math.max(trace.x?.length ?? 0, trace.y?.length ?? 0);
  const errors = trace.error_y?.array ? [trace.error_y, trace.y] : [trace.error_x ?? {}, trace.x];
  return Array.from({ length }, (_, index) => {
    const point = [trace.x?.[index] ?? null, trace.y?.[index] ?? null, null];
    const [{ array, arrayminus }, middle] = errors;
    if (!array || middle?.[index] == null) return point;
    const round = (value) => Number(value.toPrecision(7));
    return [...point, round(middle[index] - (arrayminus ?? array)[index]), round(middle[index] + array[index])];
  });
}
