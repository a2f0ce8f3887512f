// Duels: two methods, query by query.

const DIGITS = 4;

function duelBlock(block) {
  const [one, other] = block.start;
  const state = { one, other, measure: 0 };
  const controls = element("div", { class: "controls" });
  const summary = element("div", { class: "tally", role: "status" });
  const chart = makeChart(duelChart(block, state, []), { clicked: (place) => openAt(place) });
  const list = makeGrid({ columns: duelColumns(block, state), rows: [], caption: "Queries: choose one to see its documents" },
    { open: (row) => openAt(current.findIndex(({ query }) => query === row.query)), order: { index: 5, down: true } });
  let current = [];

  function openAt(place) {
    openQuery(block, state, current, place);
  }

  function update() {
    current = differences(block, state);
    summary.replaceChildren(...tally(block, state, current));
    chart.update(duelChart(block, state, current));
    list.show(duelRows(block, current), duelColumns(block, state));
  }

  function drawControls() {
    const pick = (key) => (index) => {
      state[key] = index;
      update();
    };
    controls.replaceChildren(
      select("Method A", block.methods, state.one, pick("one")),
      button("⇄", swap, { class: "quiet swap", "aria-label": "Swap A and B", title: "Swap A and B" }),
      select("Method B", block.methods, state.other, pick("other")),
      select("Measure", block.measures, state.measure, pick("measure")),
    );
  }

  function swap() {
    [state.one, state.other] = [state.other, state.one];
    drawControls();
    controls.querySelector(".swap").focus();
    update();
  }

  drawControls();
  update();
  chart.node.append(element("figcaption", {}, block.caption));
  return element("div", { class: "duel" }, controls, summary, chart.node, list.node);
}

/** What A has over B in every query that both have values of, the highest first. */
function differences(block, { one, other, measure }) {
  const [ours, theirs] = [block.values[measure][one], block.values[measure][other]];
  return block.qid.map((_, query) => ({ query, one: ours[query], other: theirs[query] }))
    .map((pair) => ({ ...pair, difference: pair.one === null || pair.other === null ? null : pair.one - pair.other }))
    .filter(({ difference }) => difference !== null)
    .sort((a, b) => b.difference - a.difference || a.query - b.query);
}

function tally(block, { one, other, measure }, current) {
  const wins = current.filter(({ difference }) => difference > 0).length;
  const losses = current.filter(({ difference }) => difference < 0).length;
  const total = current.reduce((sum, { difference }) => sum + difference, 0);
  const mean = current.length ? total / current.length / block.scale : null;
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
      item("A better", String(wins), "better"), item("Equal", String(current.length - wins - losses)),
      item("B better", String(losses), "worse"), item("Mean of A − B", mean === null ? MISSING : signed(mean, DIGITS))),
    element("div", { class: "shares", "aria-hidden": "true" },
      share(wins, "better"), share(current.length - wins - losses, "equal"), share(losses, "worse")),
  ];
}

function duelChart(block, { one, other, measure }, current) {
  const value = (number) => shown(number / block.scale, DIGITS);
  return {
    data: [{
      type: "bar",
      name: "A − B",
      y: current.map(({ difference }) => difference / block.scale),
      customdata: current.map((row) => [block.qid[row.query], value(row.one), value(row.other)]),
      hovertemplate: "Query %{customdata[0]}<br>A %{customdata[1]}, B %{customdata[2]}<br>A − B %{y:+.4f}<extra></extra>",
      textposition: "none",
      marker: { color: current.map(({ difference }) => (difference > 0 ? "var(--better)" : "var(--worse)")) },
    }],
    layout: {
      bargap: 0,
      margin: { b: 30 },
      xaxis: { title: { text: "Queries, from A's best to B's best" }, showgrid: false, showticklabels: false, zeroline: false },
      yaxis: { title: { text: `A − B, ${block.measures[measure]}` } },
    },
    caption: `Differences of ${block.methods[one]} and ${block.methods[other]}`,
    height: 280,
  };
}

function duelColumns(block, { one, other }) {
  return [
    { name: "Query" }, { name: "Fold" }, { name: "Documents" },
    { name: "A", digits: DIGITS, title: block.methods[one] }, { name: "B", digits: DIGITS, title: block.methods[other] },
    { name: "A − B", digits: DIGITS },
  ];
}

function duelRows(block, current) {
  return current.map(({ query, one, other, difference }) => ({
    query,
    cells: [
      block.qid[query], block.fold[query], block.n_docs[query], one / block.scale, other / block.scale,
      { value: difference / block.scale, text: signed(difference / block.scale, DIGITS), style: tone(difference) },
    ],
  }));
}

function tone(difference) {
  return difference > 0 ? "better" : difference < 0 ? "worse" : "";
}

/** A query in a dialog, which the browser closes on Escape; its neighbours in the list are a step away. */
function openQuery(block, state, current, place) {
  const before = document.activeElement;
  const title = element("h3", { id: freshId("query") });
  const content = element("div");
  const previous = button("←", () => step(-1), { class: "quiet", "aria-label": "Previous query", title: "Previous query" });
  const next = button("→", () => step(1), { class: "quiet", "aria-label": "Next query", title: "Next query" });
  const close = button("Close", () => dialog.close(), { class: "quiet", autofocus: true });
  const dialog = element("dialog", { class: "query", "aria-labelledby": title.id },
    element("header", {}, title, previous, next, close), content);

  function step(by) {
    if (!(place + by in current)) return;
    place += by;
    title.textContent = `Query ${block.qid[current[place].query]}`;
    previous.disabled = place === 0;
    next.disabled = place === current.length - 1;
    content.replaceChildren(
      queryFacts(block, state, current[place]), queryDocuments(block, state, current[place].query),
    );
    dialog.scrollTop = 0;
  }

  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.target.matches("input")) return;
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (before?.isConnected) before.focus();
  });
  step(0);
  document.body.append(dialog);
  dialog.showModal();
}

function queryFacts(block, { one, other, measure }, { query, ...pair }) {
  const item = (name, value, style) => element("div", { class: style }, element("dt", {}, name), element("dd", {}, value));
  const value = (number) => shown(number / block.scale, DIGITS);
  return element("dl", { class: "facts" },
    item(`A, ${block.methods[one]}`, value(pair.one)), item(`B, ${block.methods[other]}`, value(pair.other)),
    item(`A − B, ${block.measures[measure]}`, signed(pair.difference / block.scale, DIGITS), tone(pair.difference)),
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
