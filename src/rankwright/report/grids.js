// Grids: tables that can be sorted, filtered and copied.

const ROWS_AT_ONCE = 200;
const ROWS_TO_FILTER = 8;
const ROWS_TO_SCROLL = 20;
const ROWS_ON_PAPER = 40; // as print.css has it
const MANY_COLUMNS = 10;
const LONG = 28; // characters that are surely not cut
const WRAPPED = 16; // characters of a name that fit on a line of a phone

/** The meaning of marks: a colour, and a word for readers who do not see it. */
const MARKS = { "▲": "better", "▼": "worse" };

/** Cells are bare values or objects; from here on they are objects. */
function cellOf(cell) {
  return cell !== null && typeof cell === "object" ? cell : { value: cell };
}

function cellText(cell, column) {
  return cell.text ?? shown(cell.value, column.digits ?? null);
}

/**
 * A grid: { node, show(rows, columns), listed() }, the last being the rows as the reader sees them, sorted and filtered.
 * With `open`, a click on a row or Enter opens it, and arrows move between rows; `order` is the first sorting, `label`
 * the name of a grid without a caption.
 */
function makeGrid({ columns, rows, caption = "", note = "" }, { open = null, order = null, label = caption } = {}) {
  const state = { rows: [], wanted: [], limit: ROWS_AT_ONCE, sort: order, words: [] };
  const head = element("tr");
  const body = element("tbody");
  const table = element("table", {}, element("thead", {}, head), body);
  const scroll = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, table);
  const filter = element("input", { type: "search", placeholder: "Filter rows", "aria-label": `Filter rows: ${label}` });
  const count = element("output");
  const copy = button("Copy as CSV", () => copyText(csv(visibleColumns(), state.wanted), copy), { class: "link" });
  const tools = element("div", { class: "tools" }, filter, count, copy);
  const more = button("", () => showMore(), { class: "quiet more" });
  const empty = element("p", { class: "empty" });
  const node = element("figure", { class: "grid" },
    caption ? element("figcaption", {}, caption) : null, tools, scroll, empty, more,
    note ? element("p", { class: "note-line" }, note) : null);
  const firstWidth = new ResizeObserver(([{ borderBoxSize }]) => {
    table.style.setProperty("--first", `${borderBoxSize[0].inlineSize}px`); // where the second column stays
  });

  function visibleColumns() {
    return columns.map((column, index) => ({ ...column, index }))
      .filter((column) => column.method === undefined || isShown(column.method));
  }

  function showMore() {
    const first = state.limit;
    state.limit += ROWS_AT_ONCE;
    drawBody();
    body.rows[first]?.querySelector("button")?.focus();
  }

  function arrange() {
    const shownRows = state.rows.filter(isRowShown);
    state.wanted = shownRows.filter((row) => matches(row, state.words));
    if (state.sort) state.wanted = sorted(state.wanted, state.sort);
    state.limit = ROWS_AT_ONCE;
    drawBody();
    sayIfEmpty(state.rows.length > 0 && (shownRows.length === 0 || areColumnsHidden(columns)));
  }

  function sayIfEmpty(isHidden) {
    const isFiltered = state.rows.length > 0 && state.wanted.length === 0;
    empty.textContent = isHidden ? whyHidden() : isFiltered ? "No row matches the filter." : "";
    scroll.hidden = isHidden;
    tools.hidden = isHidden || state.rows.length <= ROWS_TO_FILTER;
  }

  function drawBody() {
    const wanted = state.wanted.slice(0, state.limit);
    const visible = visibleColumns();
    body.replaceChildren(...wanted.map((row, place) => rowNode(row, visible, open, place)));
    const left = state.wanted.length - wanted.length;
    more.hidden = left === 0;
    more.textContent = `Show ${Math.min(left, ROWS_AT_ONCE)} more of ${counted(left, "row")} left`;
    const total = counted(state.rows.length, "row");
    count.textContent = state.wanted.length < state.rows.length ? `${state.wanted.length} of ${total}` : total;
    if (state.wanted.length > ROWS_ON_PAPER) scroll.dataset.cut = state.wanted.length;
    else delete scroll.dataset.cut;
    scroll.classList.toggle("tall", state.rows.length > ROWS_TO_SCROLL);
  }

  function drawHead() {
    head.replaceChildren(...visibleColumns().map((column) => headNode(column, state.sort, () => {
      state.sort = nextSort(state.sort, column);
      drawHead();
      arrange();
      head.querySelector(`[data-column="${column.index}"]`).focus();
    })));
    node.classList.toggle("wide", head.cells.length > MANY_COLUMNS);
    firstWidth.disconnect();
    if (head.cells.length > 0) firstWidth.observe(head.cells[0]);
  }

  function show(rows, newColumns = columns) {
    columns = newColumns.map((column, index) => ({ ...column, numeric: isNumeric(rows, index) }));
    state.rows = rows.map((row) => prepared(row, columns));
    table.classList.toggle("paired", rows.length > 0 && rows.every((row) => row.methods?.length === 2));
    drawHead();
    arrange();
  }

  filter.addEventListener("input", oncePerFrame(() => {
    state.words = plainMinus(filter.value.toLowerCase()).split(/\s+/).filter(Boolean);
    arrange();
  }));
  if (open) moveByArrows(body, showMore, more);
  if (followsMethods(columns, rows)) {
    onMethods(() => {
      drawHead();
      arrange();
    });
  }
  show(rows);
  return { node, show, listed: () => state.wanted };
}

function areColumnsHidden(columns) {
  const followed = columns.filter((column) => column.method !== undefined);
  return followed.length > 0 && !followed.some((column) => isShown(column.method));
}

function followsMethods(columns, rows) {
  return columns.some((column) => column.method !== undefined) || rows.some((row) => row.methods?.length > 0);
}

function prepared(row, columns) {
  const cells = row.cells.map(cellOf);
  const texts = cells.map((cell, index) => cellText(cell, columns[index]));
  return { ...row, cells, texts, search: plainMinus(texts.join(" ").toLowerCase()) };
}

function plainMinus(text) {
  return text.replaceAll("−", "-");
}

function isRowShown(row) {
  return (row.methods ?? []).every(isShown);
}

function matches(row, words) {
  return words.every((word) => row.search.includes(word));
}

function isNumeric(rows, index) {
  const values = rows.map((row) => cellOf(row.cells[index]).value).filter((value) => value !== null);
  return values.length > 0 && values.every((value) => typeof value === "number");
}

/** Numbers from the highest, text from A; a second click reverses the order, a third restores the first one. */
function nextSort(sort, { index, numeric }) {
  if (sort?.index !== index) return { index, down: numeric, turned: false };
  return sort.turned ? null : { index, down: !sort.down, turned: true };
}

/** A stable sort; missing values come last in both directions. */
function sorted(rows, { index, down }) {
  const sign = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [one, other] = [a.cells[index].value, b.cells[index].value];
    if (one === null || other === null) return (one === null) - (other === null);
    return sign * compared(one, other);
  });
}

const collator = new Intl.Collator("en", { numeric: true });

function compared(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return collator.compare(String(one), String(other));
}

function headNode(column, sort, turn) {
  const active = sort?.index === column.index;
  const direction = active ? (sort.down ? "descending" : "ascending") : "none";
  const head = button("", turn, { "data-column": column.index, title: column.title });
  head.append(element("span", {}, column.name), element("span", { class: "arrow", "aria-hidden": "true" },
    active ? (sort.down ? "↓" : "↑") : ""));
  return element("th", {
    scope: "col", "aria-sort": direction, "data-name": column.name,
    class: [column.numeric ? "number" : "", column.name.length > WRAPPED ? "wraps" : ""].filter(Boolean).join(" ") || null,
  }, head);
}

function rowNode(row, columns, open, place) {
  const node = element("tr", {}, ...columns.map((column) => cellNode(row, column)));
  const first = node.firstElementChild;
  if (row.methods?.length === 1) first?.prepend(swatch(lookOfMethod(row.methods[0])));
  if (open && first) {
    const opener = element("button", { type: "button", class: "link", tabindex: place === 0 ? 0 : -1 });
    opener.append(...first.childNodes);
    first.append(opener);
    node.classList.add("opens");
    node.addEventListener("click", () => {
      opener.focus({ preventScroll: true }); // where the focus comes back to
      open(row);
    });
  }
  return node;
}

function cellNode(row, column) {
  const cell = row.cells[column.index];
  const text = row.texts[column.index];
  const isLong = text.length > LONG;
  const isName = column.index < Math.max(row.methods?.length ?? 1, 1);
  const kind = column.numeric ? "number" : isName && text.length > WRAPPED ? "wraps" : isLong ? "long" : "";
  const node = element(column.index === 0 ? "th" : "td", {
    scope: column.index === 0 ? "row" : null,
    class: [kind, cell.emphasis, cell.style].filter(Boolean).join(" ") || null,
    title: cell.title ?? (isLong ? text : null),
  }, ...(isLong ? breakable(text) : [text]));
  if (cell.tint !== undefined) node.style.setProperty("--tint", `${cell.tint}%`);
  if (cell.mark) node.append(...markNodes(cell));
  return node;
}

/** A text that may be broken after commas and slashes, as of commands and paths. */
function breakable(text) {
  return text.split(/(?<=[,/])/).flatMap((part, place) => (place ? [element("wbr"), part] : [part]));
}

function markNodes({ mark, title }) {
  const said = [MARKS[mark], title].filter(Boolean).join(": ");
  return [
    element("span", { class: `mark ${MARKS[mark] ?? ""}`.trim(), "aria-hidden": said ? "true" : null }, mark),
    said ? element("span", { class: "unseen" }, ` (${said})`) : null,
  ].filter(Boolean);
}

/** One row can be reached by Tab; from there the arrows, Home and End move. */
function moveByArrows(body, showMore, more) {
  const steps = {
    ArrowDown: (place) => place + 1,
    ArrowUp: (place) => place - 1,
    Home: () => 0,
    End: () => body.rows.length - 1,
  };
  body.addEventListener("keydown", (event) => {
    const row = event.target.closest("tr");
    if (!row || !(event.key in steps)) return;
    event.preventDefault();
    const place = steps[event.key](row.sectionRowIndex);
    if (place >= body.rows.length && !more.hidden) showMore();
    body.rows[place]?.querySelector("button").focus();
  });
  body.addEventListener("focusin", (event) => {
    for (const opener of body.querySelectorAll('button[tabindex="0"]')) opener.tabIndex = -1;
    event.target.tabIndex = 0;
  });
}

/** All rows that match, not only the ones drawn; marks, where a column has some, in a column of their own. */
function csv(columns, rows) {
  const parts = columns.flatMap(({ name, index }) => {
    const isMarked = rows.some((row) => row.cells[index].mark);
    const values = { name, of: (row) => copied(row.cells[index]) };
    return isMarked ? [values, { name: `${name} mark`, of: (row) => harmless(row.cells[index].mark ?? "") }] : [values];
  });
  const lines = [parts.map(({ name }) => harmless(name)), ...rows.map((row) => parts.map(({ of }) => of(row)))];
  return lines.map((line) => `${line.map(quoted).join(",")}\r\n`).join("");
}

const NUMBERS = /(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+−]?\d+)?/gi;

/** A number with all its digits; a text of several numbers, such as an interval, as it is shown. */
function copied({ value, text }) {
  const isInterval = text !== undefined && (text.match(NUMBERS) ?? []).length > 1;
  if (typeof value === "number" && !isInterval) return String(value);
  const said = text ?? value ?? "";
  return said === MISSING ? "" : harmless(String(said));
}

/** Text that a spreadsheet would take for a formula gets an apostrophe; text that is a number does no harm. */
function harmless(text) {
  return /^[=+\-@\t\r]/.test(text) && !Number.isFinite(Number(text)) ? `'${text}` : text;
}

function quoted(text) {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

async function copyText(text, source) {
  const label = source.textContent;
  try {
    await navigator.clipboard.writeText(text);
    source.textContent = "Copied";
  } catch {
    source.textContent = copyByCommand(text) ? "Copied" : "Could not copy";
  }
  setTimeout(() => {
    source.textContent = label;
  }, 1500);
}

/** The older method, for pages opened from a file, where browsers refuse the newer one. */
function copyByCommand(text) {
  const area = element("textarea", { class: "unseen", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
