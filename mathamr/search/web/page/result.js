/* One result: title, score, text, why it was found, heat map and whole post. */

import { showHeatMap } from "./heat_map.js";
import { ask, askPost } from "./server.js";
import { byName, drawing, element, showParts, similarityBar } from "./shown.js";

export const sentencesOf = (post) => post.sentences.map((sentence) => showParts(element("p"), sentence));

/* The address of a post, which stays the same as long as the index has the post. */
function addressOf(postId, about) {
  const usual = about.indexes[0].name === about.name;
  return `#${new URLSearchParams(usual ? { post: postId } : { post: postId, index: about.name })}`;
}

function linkTo(postId, about) {
  const link = element("a", `post ${postId}`);
  link.href = addressOf(postId, about);
  return link;
}

/* One result of `answer`, to what was `asked` of the index that `about` describes. */
export function shown(result, rank, answer, asked, about) {
  const item = byName("result").content.firstElementChild.cloneNode(true);
  item.querySelector("article").dataset.rank = rank;
  const part = (selector) => item.querySelector(selector);
  const title = result.title.length > 0 ? result.title : [`Post ${result.post_id}`];
  if (result.formula) {
    showParts(part("h2"), result.formula.latex ? [{ latex: result.formula.latex }] : [`Formula ${result.formula.formula_id}`]);
    part("h2").classList.add("formula");
    part(".origin").append(`formula ${result.formula.formula_id} of `, linkTo(result.post_id, about), ": ");
    showParts(part(".origin"), title);
    if (result.match) showMatch(part(".why"), result.match);
    else part(".why").remove();
  } else {
    showParts(part("h2"), title);
    part(".origin").append(linkTo(result.post_id, about));
    if (result.question) {
      part(".question").hidden = false;
      part(".question").append(`Answers question ${result.question.post_id}${result.question.snippet.length ? ": " : ""}`);
      showParts(part(".question"), result.question.snippet);
    }
    if (about.explains) showMatches(part(".why"), result);
    else if (result.overlap?.words.length || result.overlap?.formulas.length) showOverlap(part(".why"), result.overlap);
    else part(".why").remove();
  }
  const best = answer.best === null || answer.best === 1 ? "" : ` of ${answer.best}`;
  const bar = answer.best === null ? [] : [similarityBar(result.score / answer.best)];
  part(".score").append(...bar, element("strong", result.score.toFixed(3)), best);
  showParts(part(".snippet"), result.snippet);
  if (!about.explains) part(".heat").remove();
  else disclose(part(".heat"), part(".heat-map"), async (place) => {
    const map = await ask("api/heat-map", { query: asked.query, post_id: result.post_id, index: about.name });
    showHeatMap(place, map);
  });
  disclose(part(".whole"), part(".post-text"), async (place) => {
    const post = await askPost(result.post_id, about.name);
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

/* Words of both the question and the post, and formulas of the post that are similar to those of the question. */
function showOverlap(why, { words, formulas }) {
  const few = words.slice(0, 8).join(", ") + (words.length > 8 ? ", ..." : "");
  const similar = formulas.length === 0 ? "" : `${formulas.length} similar formula${formulas.length === 1 ? "" : "s"}`;
  why.querySelector("summary").replaceChildren("In common: ", element("bdi", few), few && similar ? "; " : "", similar);
  why.addEventListener("toggle", () => {
    const list = why.querySelector(".matches");
    if (words.length > 0) list.append(element("li", `words: ${words.join(", ")}`, "hint"));
    for (const { query, document: found, match } of formulas) {
      const row = element("li");
      const [own, other] = [query, found].map((formula) => ({ kind: "formula", text: [formula] }));
      row.append(showNode(own, "question"), element("span"), element("span", match, "tag"), showNode(other, "post"));
      list.append(row);
    }
    typeset(list);
  }, { once: true });
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
  const heads = element("li", "", "hint heads");
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
      await fill(content);
      place.replaceChildren(content);
    } catch (problem) {
      filled = false;
      place.replaceChildren(element("p", problem.message, "wrong"));
    }
  });
}
