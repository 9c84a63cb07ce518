/* The similarity of every virtual node of the question (rows) with every one of the post (columns). */

import { element, showParts } from "./shown.js";

const LETTERS = { formula: "F", sentence: "S", document: "D" };
const NAMES = { formula: "Formulas", sentence: "Sentences", document: "Post" };
const MAX_ROWS = 100, MAX_CELLS = 12000; // of a table that a browser still moves quickly

export function showHeatMap(place, map) {
  const rows = map.query.slice(0, MAX_ROWS);
  const all = [...map.document.keys()];
  const few = all.length * rows.length > MAX_CELLS;
  const columns = few ? [...new Set(map.best.slice(0, rows.length))].sort((a, b) => a - b) : all;
  const shownScores = rows.flatMap((_, i) => columns.map((j) => map.similarities[i][j]));
  const low = Math.min(...shownScores), high = Math.max(...shownScores);

  const table = element("table");
  table.setAttribute("role", "grid");
  table.setAttribute("aria-label", `Similarities of the question and post ${map.post_id}`);
  table.append(heads(map, columns));
  const body = table.createTBody();
  rows.forEach((node, i) => {
    const row = body.insertRow();
    const head = element("th", "", "label");
    head.scope = "row";
    const words = node.kind === "document" ? ["whole question"] : node.text.length ? node.text : [name(node)];
    head.append(element("span", code(node), "tag"), showParts(element("span", "", "words"), words));
    row.append(head);
    for (const j of columns) {
      const score = map.similarities[i][j], cell = row.insertCell();
      const level = high > low ? (score - low) / (high - low) : 1;
      cell.textContent = short(score);
      cell.style.setProperty("--level", level.toFixed(3));
      cell.classList.toggle("best", map.best[i] === j);
      cell.classList.toggle("first", j > 0 && map.document[j].kind !== map.document[j - 1].kind);
      cell.tabIndex = -1;
      cell.setAttribute("aria-label", `${name(node)} of the question, ${name(map.document[j])} of the post: ${score.toFixed(3)}${map.best[i] === j ? ", the best of the row" : ""}`);
      Object.assign(cell.dataset, { row: i, column: j });
    }
  });

  const scroller = element("div", "", "scroller");
  scroller.append(table);
  const pair = element("div", "", "pair");
  pair.setAttribute("aria-live", "polite");
  place.replaceChildren(legend(map), scale(low, high), scroller, pair);
  if (few || rows.length < map.query.length) {
    const left = few ? "only columns that are the best of a row" : "all columns";
    place.append(element("p", `Of ${map.query.length} rows and ${all.length} columns, ${rows.length} rows and ${left} are shown.`, "hint"));
  }
  move(table, (cell) => showPair(pair, map, Number(cell.dataset.row), Number(cell.dataset.column)));
  typeset(place);
}

function legend(map) {
  const text = `Cosine similarity. Rows: the question; columns: post ${map.post_id}. Framed: the best of a row; their sum is the MaxSim score, ${map.score.toFixed(3)}.`;
  return element("p", text, "hint");
}

/* Two rows of heads: kinds, and the single nodes. */
function heads(map, columns) {
  const head = document.createElement("thead");
  const kinds = head.insertRow(), nodes = head.insertRow();
  const corner = element("td");
  corner.rowSpan = 2;
  kinds.append(corner);
  for (const kind of Object.keys(NAMES)) {
    const width = columns.filter((j) => map.document[j].kind === kind).length;
    if (width === 0) continue;
    const cell = element("th");
    cell.append(element("span", NAMES[kind]));
    cell.colSpan = width;
    cell.scope = "colgroup";
    kinds.append(cell);
  }
  for (const j of columns) {
    const cell = element("th", code(map.document[j]));
    cell.scope = "col";
    cell.classList.toggle("first", j > 0 && map.document[j].kind !== map.document[j - 1].kind);
    nodes.append(cell);
  }
  return head;
}

function scale(low, high) {
  const place = element("p", "", "scale");
  place.append(low.toFixed(2), element("span", "", "ramp"), high.toFixed(2));
  place.setAttribute("aria-hidden", "true");
  return place;
}

const short = (score) => score.toFixed(2).replace(/^-0\.00$/, "0.00").replace("0.", ".");
const code = (node) => (node.kind === "document" ? LETTERS.document : `${LETTERS[node.kind]}${node.number}`);
const name = (node) => (node.kind === "document" ? "the whole" : `${node.kind} ${node.number}`);

/* Below the table: the two nodes of the cell that the pointer or the keyboard is at. */
function showPair(place, map, i, j) {
  const side = (node, owner) => {
    const part = element("div", "", "node");
    part.append(element("span", `${owner} ${code(node)}`, "tag"));
    const words = node.kind === "document" ? ["the whole"] : node.text.length ? node.text : [name(node)];
    part.append(showParts(element("span", "", "words"), words));
    return part;
  };
  place.replaceChildren(
    side(map.query[i], "question"),
    element("strong", map.similarities[i][j].toFixed(3)),
    side(map.document[j], "post"),
  );
  typeset(place);
}

/* Arrow keys, Home and End go from cell to cell; one cell at a time is in the order of the Tab key. */
function move(table, show) {
  const cells = [...table.tBodies[0].rows].map((row) => [...row.cells].slice(1));
  const start = table.querySelector("td.best") ?? cells[0][0];
  let current = start;
  const choose = (cell) => {
    current.tabIndex = -1;
    current = cell;
    current.tabIndex = 0;
    show(cell);
  };
  choose(start);
  table.addEventListener("pointerover", (event) => {
    const cell = event.target.closest("tbody td");
    if (cell) choose(cell);
  });
  table.addEventListener("focusin", (event) => {
    const cell = event.target.closest("tbody td");
    if (cell && cell !== current) choose(cell);
  });
  table.addEventListener("keydown", (event) => {
    const row = cells.findIndex((line) => line.includes(current)), column = cells[row].indexOf(current);
    const steps = {
      ArrowRight: [row, column + 1], ArrowLeft: [row, column - 1], ArrowDown: [row + 1, column],
      ArrowUp: [row - 1, column], Home: [row, 0], End: [row, cells[row].length - 1],
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const next = cells[step[0]]?.[step[1]];
    if (!next) return;
    choose(next);
    next.focus();
  });
}
