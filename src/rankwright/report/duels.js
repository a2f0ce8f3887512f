// Duels: two methods, query by query.

const DIGITS = 4;
const VIEWS = [["differences", duelBars], ["both values", duelPoints]]; // what the chart of a duel shows

function duelBlock(block) {
  const [one, other] = block.start;
  const state = { one, other, measure: 0, view: 0 };
  const controls = element("div", { class: "controls" });
  const offer = element("p", { class: "note-line" },
    "Fewer than two methods are shown on this page: here, all of them can be chosen.");
  const summary = element("div", { class: "tally", role: "status" });
  const chart = makeChart(duelChart(block, state, []), { clicked: (place) => open(current[place]) });
  const list = makeGrid({ columns: duelColumns(block, state), rows: [], caption: "Queries: choose one to see its documents" },
    { open: ({ pair }) => open(pair), order: { index: 5, down: true } });
  let current = [];

  /** The neighbours of a query are those in the list; a bar may be of a query that the list's filter leaves out. */
  function open(pair) {
    const listed = list.listed().map((row) => row.pair);
    const pairs = listed.includes(pair) ? listed : current;
    openQuery(block, state, pairs, pairs.indexOf(pair));
  }

  function update() {
    current = differences(block, state);
    summary.replaceChildren(...tally(block, state, current));
    chart.update(duelChart(block, state, current));
    list.show(duelRows(block, current), duelColumns(block, state));
  }

  function drawControls() {
    const numbers = offered(block.methods);
    const pick = (label, key) => select(label, numbers.map((number) => block.methods[number]), numbers.indexOf(state[key]),
      (index) => choose(key, numbers[index]));
    controls.replaceChildren(
      pick("Method A", "one"),
      button("⇄", swap, { class: "quiet swap", "aria-label": "Swap A and B", title: "Swap A and B" }),
      pick("Method B", "other"),
      select("Measure", block.measures, state.measure, (index) => choose("measure", index)),
      select("Chart", VIEWS.map(([name]) => name), state.view, (index) => choose("view", index)),
    );
    offer.hidden = block.methods.filter(isShown).length >= Math.min(2, block.methods.length);
  }

  function choose(key, number) {
    state[key] = number;
    update();
  }

  function followMethods() {
    const numbers = offered(block.methods);
    const before = [state.one, state.other].join();
    if (!numbers.includes(state.one)) state.one = numbers.find((number) => number !== state.other);
    if (!numbers.includes(state.other)) state.other = numbers.find((number) => number !== state.one);
    drawControls();
    if ([state.one, state.other].join() !== before) update();
  }

  function swap() {
    [state.one, state.other] = [state.other, state.one];
    drawControls();
    controls.querySelector(".swap").focus();
    update();
  }

  onMethods(followMethods);
  drawControls();
  update();
  chart.node.append(element("figcaption", {}, block.caption));
  return element("div", { class: "duel" }, controls, offer, summary, chart.node, list.node);
}

/** The numbers of the methods to choose from: those the reader sees on the page, unless they make no pair. */
function offered(names) {
  const numbers = names.map((_, number) => number);
  const visible = numbers.filter((number) => isShown(names[number]));
  return visible.length >= 2 ? visible : numbers;
}

/** The difference B - A of every query with values of both, the highest first. */
function differences(block, { one, other, measure }) {
  const [ours, theirs] = [block.values[measure][one], block.values[measure][other]];
  return block.qid.map((_, query) => ({ query, one: ours[query], other: theirs[query] }))
    .map((pair) => ({ ...pair, difference: pair.one === null || pair.other === null ? null : pair.other - pair.one }))
    .filter(({ difference }) => difference !== null)
    .sort((a, b) => b.difference - a.difference || a.query - b.query);
}

function tally(block, { one, other, measure }, current) {
  const [wins, ties, losses, mean] = block.tallies[measure][one][other]; // as in the tests of significance
  const item = (name, value, style = null) => element("div", { class: style }, element("dt", {}, name), element("dd", {}, value));
  const share = (count, style) => {
    const part = element("span", { class: style });
    part.style.flexGrow = String(count);
    return part;
  };
  return [
    element("p", {}, `${block.methods[one]} (A) against ${block.methods[other]} (B) by ${block.measures[measure]}, `
      + `${counted(current.length, "query", "queries")}`),
    element("dl", {},
      item("B better", String(wins), "better"), item("Equal", String(ties)),
      item("A better", String(losses), "worse"), item("Mean of B − A", mean.replace("-", "−"))),
    element("div", { class: "shares", "aria-hidden": "true" },
      share(wins, "better"), share(ties, "equal"), share(losses, "worse")),
  ];
}

function duelChart(block, state, current) {
  const trace = {
    name: "B − A",
    customdata: current.map((row) => [block.qid[row.query], ...[row.one, row.other, row.difference].map((number) => shown(number / block.scale, DIGITS))]),
    hovertemplate: "Query %{customdata[0]}<br>A %{customdata[1]}, B %{customdata[2]}<br>B − A %{customdata[3]}<extra></extra>",
    marker: { color: current.map(({ difference }) => COLOURS_OF_DIFFERENCES[Math.sign(difference) + 1]) },
  };
  return VIEWS[state.view][1](block, state, current, trace);
}

const COLOURS_OF_DIFFERENCES = ["var(--worse)", "var(--muted)", "var(--better)"];

/** Each query as a point: A's value to the right, B's upwards; on the diagonal both are equal. */
function duelPoints(block, { one, other, measure }, current, trace) {
  const values = (key) => current.map((row) => row[key] / block.scale);
  const most = Math.max(...values("one"), ...values("other"), 0);
  const name = block.measures[measure];
  return {
    data: [{
      ...trace, type: "scatter", mode: "markers", x: values("one"), y: values("other"),
      marker: { ...trace.marker, size: 8, opacity: 0.65 },
    }],
    layout: {
      xaxis: { title: { text: `A: ${block.methods[one]}, ${name}` } },
      yaxis: { title: { text: `B, ${name}` } },
      shapes: [{
        type: "line", layer: "below", x0: 0, y0: 0, x1: most, y1: most,
        line: { color: "var(--strong-line)", width: 1, dash: "dot" },
      }],
    },
    caption: `${name} of every query: ${block.methods[one]} (A) to the right, ${block.methods[other]} (B) upwards`,
    height: 380,
  };
}

function duelBars(block, { one, other, measure }, current, trace) {
  return {
    data: [{ ...trace, type: "bar", y: current.map(({ difference }) => difference / block.scale), textposition: "none" }],
    layout: {
      bargap: 0,
      margin: { b: 30 },
      xaxis: { title: { text: "Queries, from B's best to A's best" }, showgrid: false, showticklabels: false, zeroline: false },
      yaxis: { title: { text: `B − A, ${block.measures[measure]}` } },
    },
    caption: `${block.methods[other]} (B) less ${block.methods[one]} (A), query by query`,
    height: 280,
  };
}

function duelColumns(block, { one, other }) {
  return [
    { name: "Query" }, { name: "Fold" }, { name: "Documents" },
    { name: "A", digits: DIGITS, title: block.methods[one] }, { name: "B", digits: DIGITS, title: block.methods[other] },
    { name: "B − A", digits: DIGITS },
  ];
}

function duelRows(block, current) {
  return current.map((pair) => {
    const { query, one, other, difference } = pair;
    return {
      pair,
      cells: [
        block.qid[query], block.fold[query], block.n_docs[query], one / block.scale, other / block.scale,
        { value: difference / block.scale, text: signed(difference / block.scale, DIGITS), style: tone(difference) },
      ],
    };
  });
}

function tone(difference) {
  return difference > 0 ? "better" : difference < 0 ? "worse" : "";
}

/** A query in a dialog, which the browser closes on Escape; its neighbours among the pairs are a step away. */
function openQuery(block, state, pairs, place) {
  const before = document.activeElement;
  const title = element("h3", { id: freshId("query"), tabindex: -1, "aria-live": "polite" });
  const position = element("span", { class: "position" });
  const content = element("div");
  const previous = button("←", () => step(-1), { class: "quiet", "aria-label": "Previous query", title: "Previous query" });
  const next = button("→", () => step(1), { class: "quiet", "aria-label": "Next query", title: "Next query" });
  const close = button("Close", () => dialog.close(), { class: "quiet", autofocus: true });
  const dialog = element("dialog", { class: "query", tabindex: -1, "aria-labelledby": title.id },
    element("header", {}, title, position, previous, next, close), content);

  function draw() {
    const pair = pairs[place];
    title.textContent = `Query ${block.qid[pair.query]}`;
    position.textContent = `${place + 1} of ${pairs.length}`;
    previous.setAttribute("aria-disabled", String(place === 0)); // a disabled button would lose the focus
    next.setAttribute("aria-disabled", String(place === pairs.length - 1));
    content.replaceChildren(queryFacts(block, state, pair), queryDocuments(block, state, pair.query));
    dialog.scrollTop = 0;
  }

  function step(by) {
    if (!(place + by in pairs)) return;
    const isLost = content.contains(document.activeElement);
    place += by;
    draw();
    if (isLost) title.focus();
  }

  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.target.matches("input") || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.scrollWidth > event.target.clientWidth && event.target.matches(".scroll")) return; // it scrolls
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (before?.isConnected) before.focus();
  });
  draw();
  document.body.append(dialog);
  dialog.showModal();
}

function queryFacts(block, { one, other, measure }, { query, ...pair }) {
  const item = (name, value, style) => element("div", { class: style }, element("dt", {}, name), element("dd", {}, value));
  const value = (number) => shown(number / block.scale, DIGITS);
  return element("dl", { class: "facts" },
    item(`A, ${block.methods[one]}`, value(pair.one)), item(`B, ${block.methods[other]}`, value(pair.other)),
    item(`B − A, ${block.measures[measure]}`, signed(pair.difference / block.scale, DIGITS), tone(pair.difference)),
    item("Fold", block.fold[query]), item("Documents", String(block.n_docs[query])));
}

function queryDocuments(block, { one, other }, query) {
  const documents = block.documents[query];
  if (!documents) return element("p", { class: "text note" }, block.without_documents);
  const top = Math.max(1, ...documents.grades);
  const rows = documents.ids.map((id, index) => {
    const [ours, theirs] = [documents.ranks[one][index] || null, documents.ranks[other][index] || null];
    const grade = documents.grades[index];
    return { cells: [id, { value: grade, style: "grade", tint: (100 * grade) / top }, ours, theirs, movement(ours, theirs)] };
  });
  const left = block.n_docs[query] - rows.length;
  return makeGrid({
    columns: [
      { name: "Document" }, { name: "Grade" }, { name: "Rank by A", title: block.methods[one] },
      { name: "Rank by B", title: block.methods[other] },
      { name: "From A to B", title: "How many ranks B has it higher (▲) or lower (▼) than A" },
    ],
    rows,
    note: left > 0 ? `${counted(left, "document")} more of this query not on this page.` : "",
  }, { order: { index: 2, down: false }, label: "Documents" }).node;
}

function movement(ours, theirs) {
  if (ours === null || theirs === null) return null;
  const up = ours - theirs;
  return { value: up, text: up > 0 ? `▲ ${up}` : up < 0 ? `▼ ${-up}` : "=", style: up === 0 ? "same" : "" };
}
