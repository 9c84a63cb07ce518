/* The form, the preview and the results. Text that comes from the server is shown by textContent alone. */

import { showHeatMap } from "./heat_map.js";
import { ask, save } from "./server.js";
import { byName, drawing, element, showParts, similarityBar } from "./shown.js";

const [form, query, preview, previewBox, count, examples, error, status, results, strategy, shownResults, explained, go, tools, single,
  kind, formulas, order, pages, previous, next, range] =
  ["form", "query", "preview", "preview-box", "count", "examples", "error", "status", "results", "strategy", "k",
   "explained", "go", "tools", "single", "kind", "formulas", "order", "pages", "previous", "next", "range"].map(byName);
const task = () => form.elements.task.value;

const STRATEGIES = {
  maxsim: ["all virtual nodes", "MaxSim: for each formula and sentence of the question, and for the whole of it, the best match in the post; the score is their sum."],
  doc_vn_maxsim: ["document, then all nodes", "The posts whose document vector is nearest, ranked by MaxSim over all virtual nodes."],
  single_vector: ["document vectors", "Cosine of two vectors, one for the whole question and one for the whole post."],
};
const FORMULAS = {
  structure: "Formulas that have a large part in common with the first formula in the question, up to renaming of variables.",
  vectors: "Formulas whose vector is nearest to that of the first formula in the question.",
};
const CHOICES_OF_K = [5, 10, 20, 50];
const PREVIEW_DELAY = 120; // milliseconds after a key, so that typing stays quick

let index = null; // what /api/index says
let first = 0; // number of results before the page that is shown
let listed = null; // the request whose results are shown
let search = null; // the AbortController of the search under way

async function start() {
  try {
    index = await ask("api/index");
  } catch (problem) {
    error.textContent = problem.message;
    return;
  }
  const posts = index.posts.toLocaleString("en"), formulas = index.formulas.toLocaleString("en");
  const searched = index.explains ? `${formulas} formulas, backend ${index.backend}` : `ranked by ${index.system}`;
  byName("about").textContent = `${posts} posts, ${searched}`;
  strategy.closest("label").hidden = index.strategies.length === 0;
  if (index.note) status.textContent = `Note: ${index.note}.`;
  for (const choice of index.strategies) {
    const name = `${STRATEGIES[choice.strategy]?.[0] ?? choice.strategy}${choice.exact ? "" : " (approximate)"}`;
    strategy.append(new Option(name, JSON.stringify(choice)));
  }
  const choices = [...new Set([...CHOICES_OF_K, index.usual.k])].sort((a, b) => a - b);
  shownResults.append(...choices.map((k) => new Option(`${k} results`, String(k))));
  for (const input of form.elements.task) input.disabled = !index.tasks.includes(input.value);
  typeset(examples);
  for (const button of examples.querySelectorAll("button")) button.addEventListener("click", () => tryExample(button));
  restore();
}

/* --- the form ------------------------------------------------------------------------------------------------------ */

const written = new Map([...examples.querySelectorAll("button")].map((button) => [button, button.textContent]));

function tryExample(button) {
  query.value = written.get(button);
  showPreview();
  submit();
}

let typing;
query.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(showPreview, PREVIEW_DELAY);
});
query.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    submit();
  }
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
for (const control of [byName("tasks"), strategy, shownResults, kind, formulas, order]) {
  control.addEventListener("change", () => {
    explain();
    if (listed !== null) submit();
  });
}
previous.addEventListener("click", () => submit(Math.max(0, first - Number(shownResults.value))));
next.addEventListener("click", () => submit(first + Number(shownResults.value)));

function showPreview() {
  const text = query.value;
  const tooLong = index !== null && text.length > index.max_characters;
  count.hidden = index === null || text.length < index.max_characters * 0.9;
  count.textContent = index === null ? "" : `${text.length.toLocaleString("en")} of ${index.max_characters.toLocaleString("en")} characters`;
  count.classList.toggle("wrong", tooLong);
  previewBox.hidden = tooLong || !/[$\\]/.test(text); // words alone look as they do above
  preview.textContent = previewBox.hidden ? "" : text;
  delete preview.dataset.typeset;
  typeset(preview);
}

function explain() {
  const chosen = strategy.value ? JSON.parse(strategy.value) : index.usual;
  if (index.strategies.length === 0) {
    explained.textContent = `Scores of ${index.system}, as in its run file.`;
    return;
  }
  strategy.disabled = task() === "formulas";
  const approximate = chosen.exact ? "" : " Looked up in a graph of neighbours (HNSW), which may miss some.";
  explained.textContent = strategy.disabled ? FORMULAS[index.formulas_by] : `${STRATEGIES[chosen.strategy]?.[1] ?? ""}${approximate}`;
}

/* --- the address: what was asked stands behind the #, so that a page can be kept, reloaded and gone back to -------- */

function remember() {
  const asked = { q: query.value, task: task(), k: shownResults.value, ...JSON.parse(strategy.value || "{}") };
  const more = { kind: kind.value, formulas: formulas.value, order: order.value, start: first || "" };
  for (const [name, value] of Object.entries(more)) if (value !== (index.usual[name] ?? "")) asked[name] = value;
  const hash = `#${new URLSearchParams(asked)}`;
  if (hash !== location.hash) history.pushState(null, "", hash);
}

function restore() {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (asked.has("post")) {
    showPost(asked.get("post"));
    return;
  }
  const choose = (select, value) => {
    if ([...select.options].some((option) => option.value === value)) select.value = value;
  };
  query.value = asked.get("q") ?? "";
  const wanted = index.tasks.includes(asked.get("task")) ? asked.get("task") : index.usual.task;
  form.elements.task.value = index.tasks.includes(wanted) ? wanted : "answers";
  const exact = asked.has("exact") ? asked.get("exact") === "true" : index.usual.exact;
  choose(strategy, JSON.stringify({ strategy: asked.get("strategy") ?? index.usual.strategy, exact }));
  choose(shownResults, asked.get("k") ?? String(index.usual.k));
  choose(kind, asked.get("kind") ?? index.usual.kind);
  choose(formulas, asked.get("formulas") ?? index.usual.formulas);
  choose(order, asked.get("order") ?? "");
  explain();
  showPreview();
  if (query.value) submit(Number.parseInt(asked.get("start") ?? "0", 10) || 0);
  else clear();
}
addEventListener("popstate", restore);

/* The address of a post, which stays the same as long as the index has the post. */
const addressOf = (postId) => `#${new URLSearchParams({ post: postId })}`;

function linkTo(postId) {
  const link = element("a", `post ${postId}`);
  link.href = addressOf(postId);
  return link;
}

async function showPost(postId) {
  clear();
  examples.hidden = true;
  try {
    const post = await ask(`api/posts/${encodeURIComponent(postId)}`);
    const title = showParts(element("h2"), post.title.length > 0 ? post.title : [`Post ${postId}`]);
    single.replaceChildren(title, element("p", `post ${postId}`, "hint"), ...sentencesOf(post));
    single.hidden = false;
    typeset(single);
  } catch (problem) {
    error.textContent = problem.message;
  }
}

const sentencesOf = (post) => post.sentences.map((sentence) => showParts(element("p"), sentence));

for (const button of tools.querySelectorAll("button")) {
  button.addEventListener("click", async () => {
    try {
      await save("api/export", { ...listed, format: button.value });
    } catch (problem) {
      error.textContent = problem.message;
    }
  });
}

/* --- a search ------------------------------------------------------------------------------------------------------ */

function clear() {
  error.textContent = "";
  status.textContent = index?.note ? `Note: ${index.note}.` : "";
  show([]);
  listed = null;
  examples.hidden = false;
}

/* Shows these results in place of everything that was shown before. */
function show(items) {
  results.replaceChildren(...items);
  tools.hidden = items.length === 0;
  pages.hidden = true;
  single.hidden = true;
}

/* Searches, and shows the results after the first `start` ones. */
async function submit(start = 0) {
  if (index === null) return;
  first = start;
  search?.abort();
  const mine = (search = new AbortController());
  const asked = { query: query.value, task: task(), k: Number(shownResults.value), ...JSON.parse(strategy.value || "{}"),
    kind: kind.value, formulas: formulas.value, start };
  if (asked.query.length <= index.max_characters) remember();
  error.textContent = "";
  status.textContent = "Searching ...";
  go.setAttribute("aria-busy", "true");
  const begun = performance.now();
  try {
    const answer = await ask("api/search", asked, mine.signal);
    examples.hidden = true;
    listed = asked;
    show(inOrder(answer).map(([result, rank]) => shown(result, rank, answer, asked)));
    showPages(answer);
    typeset(results);
    report(answer, asked, performance.now() - begun);
  } catch (problem) {
    if (problem.name === "AbortError") return;
    show([]);
    status.textContent = "";
    error.textContent = problem.message;
  } finally {
    if (mine === search) go.removeAttribute("aria-busy");
  }
}

/* Results with their ranks; the order of this page may be that of post ids, where numbers go by their value. */
function inOrder(answer) {
  const ranked = answer.results.map((result, i) => [result, answer.start + i + 1]);
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  return order.value === "id" ? ranked.sort(([a], [b]) => compare(b.post_id, a.post_id)) : ranked;
}

function showPages({ start, more, results: page, matching }) {
  pages.hidden = start === 0 && !more;
  previous.disabled = start === 0;
  next.disabled = !more;
  const of = matching === null ? "" : ` of ${matching.toLocaleString("en")}`;
  range.textContent = page.length === 0 ? "no results" : `${start + 1} to ${start + page.length}${of}`;
}

function report(answer, asked, milliseconds) {
  const found = answer.results.length;
  const what = asked.task === "formulas" ? "formula" : "answer";
  const { query: read, search: searched, explanation } = answer.seconds;
  const parts = `reading ${read.toFixed(3)}, searching ${searched.toFixed(3)}, explaining ${explanation.toFixed(3)}`;
  status.textContent = `${found} ${what}${found === 1 ? "" : "s"} in ${(milliseconds / 1000).toFixed(2)} s (${parts})`;
  const { matching, candidates } = answer;
  if (candidates !== null) status.append(`; ${matching.toLocaleString("en")} of ${candidates.toLocaleString("en")} candidates match`);
  const { known, unknown } = answer.read;
  if (known.length > 0) status.append(`; words that the model knows: ${known.slice(0, 20).join(", ")}`);
  if (unknown.length > 0) status.append(`; words that the model does not know: ${unknown.slice(0, 20).join(", ")}`);
  if (asked.task === "formulas" && answer.formula) {
    status.append(", formulas like ");
    showParts(status, [answer.formula]);
    typeset(status);
  }
}

function shown(result, rank, answer, asked) {
  const item = byName("result").content.firstElementChild.cloneNode(true);
  item.querySelector("article").dataset.rank = rank;
  const part = (selector) => item.querySelector(selector);
  const title = result.title.length > 0 ? result.title : [`Post ${result.post_id}`];
  if (result.formula) {
    showParts(part("h2"), result.formula.latex ? [{ latex: result.formula.latex }] : [`Formula ${result.formula.formula_id}`]);
    part("h2").classList.add("formula");
    part(".origin").append(`formula ${result.formula.formula_id} of `, linkTo(result.post_id), ": ");
    showParts(part(".origin"), title);
    if (result.match) showMatch(part(".why"), result.match);
    else part(".why").remove();
  } else {
    showParts(part("h2"), title);
    part(".origin").append(linkTo(result.post_id));
    if (result.question) {
      part(".question").hidden = false;
      part(".question").append(`Answers question ${result.question.post_id}: `);
      showParts(part(".question"), result.question.snippet);
    }
    if (index.explains) showMatches(part(".why"), result);
    else part(".why").remove();
  }
  const best = answer.best === null || answer.best === 1 ? "" : ` of ${answer.best}`;
  const bar = answer.best === null ? [] : [similarityBar(result.score / answer.best)];
  part(".score").append(...bar, element("strong", result.score.toFixed(3)), best);
  showParts(part(".snippet"), result.snippet);
  if (!index.explains) part(".heat").remove();
  else disclose(part(".heat"), part(".heat-map"), async (place) => {
    const map = await ask("api/heat-map", { query: asked.query, post_id: result.post_id });
    showHeatMap(place, map);
  });
  disclose(part(".whole"), part(".post-text"), async (place) => {
    const post = await ask(`api/posts/${encodeURIComponent(result.post_id)}`);
    if (result.formula) place.append(showParts(element("h3"), post.title));
    place.append(...sentencesOf(post));
    typeset(place);
  });
  return item;
}

const KINDS = { formula: "formula", sentence: "sentence", document: "whole" };

function showMatches(why, { matches, more_matches: more }) {
  const scores = matches.slice(0, 6).map((match) => `${KINDS[match.query.kind]} ${match.score.toFixed(2)}`);
  why.querySelector("summary").textContent = `Why: ${scores.join(", ")}${matches.length > scores.length ? ", ..." : ""}`;
  why.addEventListener("toggle", () => fillMatches(why.querySelector(".matches"), matches, more), { once: true });
}

/* The common part of both formulas, coloured; symbols that did not match are pale. */
function showMatch(why, match) {
  const renamed = match.renaming.map(([own, other]) => `${own} is ${other}`);
  const changed = match.changed.map(([own, other]) => `${own} is changed to ${other}`);
  const parts = [`Match: ${match.matched} of ${match.symbols} symbols`, ...renamed, ...changed];
  why.querySelector("summary").textContent = parts.join(", ");
  why.open = true;
  const list = why.querySelector(".matches");
  list.className = "match";
  for (const [name, formula] of [["in your question", match.query], ["found", match.formula]]) {
    const row = element("li");
    const shown = element("span", "", "drawing");
    shown.append(drawing(formula));
    row.append(element("span", name, "tag"), shown);
    list.append(row);
  }
  const legend = element("li", "", "hint legend");
  for (const [role, meaning] of Object.entries(ROLE_NAMES)) legend.append(element("span", meaning, role), " ");
  list.append(legend);
}

const ROLE_NAMES = { equal: "equal", renamed: "renamed", changed: "another number or letter" };

function fillMatches(list, matches, more) {
  const heads = element("li", "", "hint");
  heads.append(element("span", "in your question"), element("span", "in the post"));
  list.append(heads);
  for (const match of matches) {
    const row = element("li");
    row.append(
      showNode(match.query, "question"),
      similarityBar(match.score),
      element("span", match.score.toFixed(3), "number"),
      showNode(match.document, "post"),
    );
    list.append(row);
  }
  if (more > 0) list.append(element("li", `... and ${more} more`, "hint"));
  typeset(list);
}

function showNode(node, owner) {
  const place = element("div", "", "node");
  place.append(element("span", KINDS[node.kind], "tag"));
  const text = node.kind === "document" ? [owner] : node.text.length > 0 ? node.text : [`number ${node.number}`];
  place.append(showParts(element("span", "", "words"), text));
  return place;
}

/* Opens and closes `place` by `button`; `fill` loads what is in it when it is first opened. */
function disclose(button, place, fill) {
  let filled = false;
  button.addEventListener("click", async () => {
    place.hidden = !place.hidden;
    button.setAttribute("aria-expanded", String(!place.hidden));
    if (filled || place.hidden) return;
    filled = true;
    place.textContent = "Loading ...";
    try {
      const content = element("div");
      place.replaceChildren(content);
      await fill(content);
    } catch (problem) {
      filled = false;
      place.replaceChildren(element("p", problem.message, "wrong"));
    }
  });
}

start();
