/* Two ranked lists side by side; each result tells its rank in the other list. */

import { shown } from "./result.js";
import { element } from "./shown.js";

/* Fills `place` with the lists of `found`, what was `asked` of the indexes `abouts`; returns a summary in words. */
export function showComparison(place, found, asked, abouts) {
  place.replaceChildren(...found.lists.map((list, i) => column(list, asked, abouts[i], abouts[1 - i].name, found.depth)));
  typeset(place);
  const seconds = found.lists.map(({ index, seconds: own }) => `${index} ${total(own).toFixed(3)} s`).join(", ");
  return `${found.shared} of the first ${asked.k} results are in both lists (${seconds})`;
}

const total = ({ query, search, explanation }) => query + search + explanation;

function column(list, asked, about, otherName, depth) {
  const section = element("section", "", "column");
  const head = element("h2", list.index, "column-name");
  head.id = `column-${list.index}`;
  section.setAttribute("aria-labelledby", head.id);
  const ranked = element("ol", "", "ranked");
  list.results.forEach((result, i) => {
    const item = shown(result, i + 1, list, asked, about);
    item.querySelector(".meta").append(move(i + 1, result.ranks[otherName], otherName, depth));
    ranked.append(item);
  });
  const system = about.explains ? "graph model" : `ranked by ${about.system}`;
  section.append(head, element("p", `${about.posts.toLocaleString("en")} posts, ${system}`, "hint"), ranked);
  if (list.results.length === 0) section.append(element("p", "no results", "hint"));
  return section;
}

/* The difference in rank: an arrow up for a result that this list ranks higher than the other one. */
function move(rank, elsewhere, otherName, depth) {
  if (elsewhere === null) return element("span", `not among the first ${depth} of ${otherName}`, "move alone");
  const by = elsewhere - rank;
  if (by === 0) return element("span", `same rank in ${otherName}`, "move");
  const place = element("span", "", "move");
  const arrow = element("span", `${by > 0 ? "\u25b2" : "\u25bc"} ${Math.abs(by)} `, by > 0 ? "up" : "down");
  arrow.setAttribute("aria-hidden", "true");
  place.append(arrow, `rank ${elsewhere} in ${otherName}`);
  return place;
}
