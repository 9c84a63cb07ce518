/* The form, the preview and the results. Text that comes from the server is shown by textContent alone. */

import { showComparison } from "./compared.js";
import { connectEditor } from "./formula.js";
import { report } from "./report.js";
import { sentencesOf, shown } from "./result.js";
import { ask, askPost, save } from "./server.js";
import { byName, element, showParts } from "./shown.js";

const [form, query, preview, previewBox, count, examples, error, status, results, strategy, shownResults, explained, go, tools, single,
  kind, formulas, order, pages, previous, next, range, system, other, comparison] =
  ["form", "query", "preview", "preview-box", "count", "examples", "error", "status", "results", "strategy", "k",
   "explained", "go", "tools", "single", "kind", "formulas", "order", "pages", "previous", "next", "range", "system", "other",
   "comparison"].map(byName);
const task = () => form.elements.task.value;

const STRATEGIES = {
  maxsim: ["all virtual nodes", "MaxSim: for each formula and sentence of the question, and for the whole of it, the best match in the post; the score is their sum."],
  doc_vn_maxsim: ["document, then all nodes", "The posts whose document vector is nearest, ranked by MaxSim over all virtual nodes."],
  single_vector: ["document vectors", "Cosine of two vectors, one for the whole question and one for the whole post."],
};
const FORMULAS = {
  structure: "Formulas that have a large part in common with the first formula in the question, up to renaming of variables. The colours show the common part of their layouts; the score also compares their operators.",
  vectors: "Formulas whose vector is nearest to that of the first formula in the question.",
};
const TITLE = document.title;
const CHOICES_OF_K = [5, 10, 20, 50];
const PREVIEW_DELAY = 120; // milliseconds after a key, so that typing stays quick

let index = null; // what /api/index says of the index that is searched
let beside = null; // and of the one it is compared with
let listed = null; // the request whose results are shown
let search = null; // the AbortController of the search under way
let choice = null; // and of the choice of indexes
let opened = ""; // the address of the last post that was shown
let failed = false; // whether the index is unknown because the server did not answer; a search asks again

async function begin() {
  failed = false;
  try {
    index = await ask("api/index");
  } catch (problem) {
    failed = true;
    go.removeAttribute("aria-busy");
    status.textContent = "";
    error.textContent = problem.message;
    return;
  }
  for (const { name, system: ranked } of index.indexes) {
    const title = ranked === "graph" || ranked === name ? name : `${name}: ${ranked}`;
    system.append(new Option(title, name));
    other.append(new Option(title, name));
  }
  for (const select of [system, other]) select.closest("label").hidden = index.indexes.length < 2;
  const choices = [...new Set([...CHOICES_OF_K, index.usual.k])].sort((a, b) => a - b);
  shownResults.append(...choices.map((k) => new Option(`${k} results`, String(k))));
  typeset(examples);
  for (const button of examples.querySelectorAll("button")) button.addEventListener("click", () => tryExample(button));
  describe();
  if (go.hasAttribute("aria-busy") && query.value) askInAddress();
  await restore(query.value);
}

/* Writes a search to the address that was begun before the index was known; other settings of the address stay. */
function askInAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  for (const name of ["post", "start"]) asked.delete(name);
  for (const control of [kind, formulas, order]) if (control.value) asked.set(control.id, control.value);
  asked.set("q", query.value);
  history.pushState(null, "", `#${asked}`);
}

/* Chooses the index that is searched and the one beside it, "" for none; the controls then offer what they can do. */
async function chooseIndexes(name, besideName) {
  const known = (wanted) => index.indexes.some((one) => one.name === wanted);
  const left = known(name) ? name : index.indexes[0].name;
  const right = known(besideName) && besideName !== left ? besideName : "";
  choice?.abort();
  const { signal } = (choice = new AbortController());
  const about = (name) => ask(`api/index?index=${encodeURIComponent(name)}`, undefined, signal);
  const chosen = index.name === left ? index : await about(left);
  beside = beside?.name === right ? beside : right ? await about(right) : null;
  index = chosen;
  describe();
}

/* What can be chosen, of the index and the one beside it. */
function describe() {
  const posts = index.posts.toLocaleString("en"), found = index.formulas.toLocaleString("en");
  const searched = index.explains ? `${found} formulas, backend ${index.backend}` : `ranked by ${index.system}`;
  byName("about").textContent = `${posts} posts, ${searched}`;
  system.value = index.name;
  other.value = beside?.name ?? "";
  for (const option of other.options) option.disabled = option.value === index.name;
  const before = strategy.value;
  strategy.replaceChildren(...strategies().map((choice) => {
    const name = `${STRATEGIES[choice.strategy]?.[0] ?? choice.strategy}${choice.exact ? "" : " (approximate)"}`;
    return new Option(name, JSON.stringify(choice));
  }));
  choose(strategy, JSON.stringify({ strategy: index.usual.strategy, exact: index.usual.exact }));
  choose(strategy, before);
  strategy.closest("label").hidden = strategies().length === 0;
  for (const input of form.elements.task) {
    input.disabled = ![index, beside ?? index].every((one) => one.tasks.includes(input.value));
    if (input.disabled && input.checked) form.elements.task.value = "answers";
  }
  order.disabled = beside !== null;
  document.body.classList.toggle("wide", beside !== null);
}

const strategies = () => (index.strategies.length > 0 ? index : beside ?? index).strategies;

/* Chooses an option; returns whether there is such an option. */
function choose(select, value) {
  const found = [...select.options].some((option) => option.value === value);
  if (found) select.value = value;
  return found;
}

/* Chooses a number of results, also one that the menu does not list; returns whether the server can show it. */
function chooseNumber(k) {
  if (choose(shownResults, k)) return true;
  if (!/^[1-9]\d*$/.test(k) || Number(k) > index.max_results) return false;
  shownResults.append(new Option(`${k} results`, k));
  return choose(shownResults, k);
}

/* --- the form ------------------------------------------------------------------------------------------------------ */

const written = new Map([...examples.querySelectorAll("button")].map((button) => [button, button.textContent]));

function tryExample(button) {
  query.value = written.get(button);
  showInEditor();
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
const showInEditor = connectEditor(query, showPreview, () => submit());
form.addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
for (const control of [byName("tasks"), strategy, shownResults, kind, formulas, order]) {
  control.addEventListener("change", searchAgain);
}
for (const control of [system, other]) {
  control.addEventListener("change", async () => {
    try {
      await chooseIndexes(system.value, other.value);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      describe(); // the menus show what is searched
      error.textContent = problem.message;
      return;
    }
    searchAgain();
  });
}
previous.addEventListener("click", () => submit(Math.max(0, listed.start - Number(shownResults.value))));
next.addEventListener("click", () => submit(listed.start + Number(shownResults.value)));

/* Follows a choice: also the search under way, which may have begun before the choice was made. */
function searchAgain() {
  if (index === null) return; // the search begins when the index is known
  explain();
  if (listed !== null || go.hasAttribute("aria-busy")) submit();
}

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
  if (strategies().length === 0) {
    explained.textContent = `Scores of ${index.system}.`;
    return;
  }
  strategy.disabled = task() === "formulas";
  const approximate = chosen.exact ? "" : " Approximate, so that some may be missed.";
  explained.textContent = strategy.disabled ? FORMULAS[index.formulas_by] : `${STRATEGIES[chosen.strategy]?.[1] ?? ""}${approximate}`;
}

/* --- the address: what was asked stands behind the #, so that a page can be kept, reloaded and gone back to -------- */

/* Writes the search to the title and the address, by `pushState` or `replaceState` of the history. */
function remember(write, start) {
  const asked = { q: query.value, task: task(), k: shownResults.value, ...JSON.parse(strategy.value || "{}") };
  const more = { kind: kind.value, formulas: formulas.value, order: order.value, start: start || "" };
  if (index.name !== index.indexes[0].name) asked.index = index.name;
  if (beside !== null) asked.beside = beside.name;
  for (const [name, value] of Object.entries(more)) if (value !== (index.usual[name] ?? "")) asked[name] = value;
  const hash = `#${new URLSearchParams(asked)}`;
  if (hash !== location.hash) history[write](null, "", hash);
  showTitle(query.value);
}

function showTitle(text) {
  document.title = text.trim() ? `${text} - ${TITLE}` : TITLE;
}

/* Follows the address; `typed` is the query if it has none: what was typed before the index was known. */
async function restore(typed = "") {
  search?.abort();
  go.removeAttribute("aria-busy");
  status.textContent = "";
  if (index === null) return; // it is called again when the index is known
  const asked = new URLSearchParams(location.hash.slice(1));
  const chosen = chooseIndexes(asked.get("index") ?? "", asked.get("beside") ?? "");
  search = choice; // a search that begins meanwhile takes the place of this one
  try {
    await chosen;
  } catch (problem) {
    if (problem.name !== "AbortError") showError(problem.message);
    return;
  }
  const names = index.indexes.map((one) => one.name);
  const lacking = ["index", "beside"].filter((name) => asked.has(name) && !names.includes(asked.get(name)));
  if (asked.has("post")) {
    if (lacking.length === 0) showPost(asked.get("post"));
    else refuse(asked, lacking);
    return;
  }
  query.value = asked.get("q") ?? typed;
  showInEditor();
  lacking.push(...fillIn(asked));
  explain();
  showPreview();
  if (lacking.length > 0) refuse(asked, lacking);
  else if (asked.get("q")) submit(Number.parseInt(asked.get("start") ?? "0", 10) || 0, "replaceState");
  else clear();
}
addEventListener("popstate", () => restore());

/* Fills in the controls below the query; returns the names in the address whose values this server does not have. */
function fillIn(asked) {
  const value = (name) => asked.get(name) ?? String(index.usual[name] ?? "");
  const hasTask = index.tasks.includes(value("task"));
  form.elements.task.value = hasTask ? value("task") : "answers";
  const chosen = JSON.stringify({ strategy: value("strategy"), exact: value("exact") === "true" });
  const hasStrategy = choose(strategy, chosen);
  const has = { task: hasTask, strategy: hasStrategy, exact: hasStrategy, k: chooseNumber(value("k")) };
  for (const [name, select] of Object.entries({ kind, formulas, order })) has[name] = choose(select, value(name));
  return Object.keys(has).filter((name) => asked.has(name) && !has[name]);
}

/* Says which values of the address this server does not have; nothing is searched, and the address stays. */
function refuse(asked, names) {
  const values = names.map((name) => `${name}=${asked.get(name)}`).join(" ");
  showError(`This address asks for ${values}, which this server does not offer; choose from the menus, then search.`);
}

/* Shows why the address cannot be followed, in place of what was shown before. */
function showError(message) {
  clear();
  examples.hidden = true;
  error.textContent = message;
}

async function showPost(postId) {
  const mine = (search = new AbortController());
  clear();
  examples.hidden = true;
  try {
    const post = await askPost(postId, index.name, mine.signal);
    const title = showParts(element("h2"), post.title.length > 0 ? post.title : [`Post ${postId}`]);
    single.replaceChildren(title, element("p", `post ${postId}`, "hint"), ...sentencesOf(post));
    single.hidden = false;
    showTitle(title.textContent);
    typeset(single);
    opened = location.hash;
    title.tabIndex = -1; // so that a screen reader reads on from here
    title.focus();
  } catch (problem) {
    if (problem.name === "AbortError") return;
    error.textContent = problem.message;
  }
}

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
  showTitle("");
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
  comparison.replaceChildren();
}

/* Searches, and shows the results after the first `start` ones; the address is written by `write` of the history. */
async function submit(start = 0, write = "pushState") {
  go.setAttribute("aria-busy", "true");
  error.textContent = "";
  status.textContent = "Searching ...";
  if (index === null) {
    if (failed) begin();
    return; // it is called again when the index is known
  }
  search?.abort();
  const mine = (search = new AbortController());
  const asked = { query: query.value, task: task(), k: Number(shownResults.value), ...JSON.parse(strategy.value || "{}"),
    kind: kind.value, formulas: formulas.value, start: beside === null ? start : 0, index: index.name };
  if (asked.query.length <= index.max_characters) remember(write, asked.start);
  const begun = performance.now();
  try {
    if (beside !== null) {
      const both = [index, beside];
      const found = await ask("api/compare", { ...asked, index: undefined, indexes: both.map((one) => one.name) }, mine.signal);
      examples.hidden = true;
      listed = asked;
      show([]);
      status.textContent = showComparison(comparison, found, asked, both);
      return;
    }
    const answer = await ask("api/search", asked, mine.signal);
    examples.hidden = true;
    listed = asked;
    show(inOrder(answer).map(([result, rank]) => shown(result, rank, answer, asked, index)));
    showPages(answer);
    typeset(results);
    const link = [...results.querySelectorAll(".origin a")].find((one) => one.hash === opened);
    if (write === "replaceState") link?.focus(); // Back from the post
    opened = "";
    report(status, answer, asked, performance.now() - begun);
    if (index?.note && asked.task === "answers" && answer.results.length > 0) status.append(`; note: ${index.note}`);
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

begin();
