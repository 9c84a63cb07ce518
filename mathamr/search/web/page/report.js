/* The line above the results that says what was found, how quickly, and how the question was read. */

import { showParts } from "./shown.js";

// LaTeX that is not between dollar signs, as scripts/search.py finds it
const LATEX = /\\[a-zA-Z]{2}|\w\^[\w{\\]|\b\w_[\w{\\]|[∀∃∈∑√∞∫≤≥]/;

/* Fills `status` from an answer of the server to what was `asked`. */
export function report(status, answer, asked, milliseconds) {
  const found = answer.results.length;
  const what = asked.task === "formulas" ? "formula" : "answer";
  const { query: read, search: searched, explanation } = answer.seconds;
  const parts = `reading ${read.toFixed(3)}, searching ${searched.toFixed(3)}, explaining ${explanation.toFixed(3)}`;
  const advice = asked.start ? "no more" : "nothing like the question; try other words, or fewer filters";
  status.textContent = `${found} ${what}${found === 1 ? "" : "s"} in ${(milliseconds / 1000).toFixed(2)} s (${parts})`;
  if (found === 0) status.append(`: ${advice}`);
  const { matching, candidates } = answer;
  if (candidates !== null) status.append(`; ${matching.toLocaleString("en")} of ${candidates.toLocaleString("en")} candidates match`);
  const { known, unknown, formulas: number } = answer.read;
  status.append(`; ${number} formula${number === 1 ? "" : "s"} read`);
  if (number === 0 && LATEX.test(asked.query)) status.append("; write formulas between dollar signs, such as $x^2$");
  if (known.length > 0) status.append(`; words that the model knows: ${known.slice(0, 20).join(", ")}`);
  if (unknown.length > 0) status.append(`; words that the model does not know: ${unknown.slice(0, 20).join(", ")}`);
  if (asked.task === "formulas" && answer.formula) {
    status.append(", formulas like ");
    showParts(status, [answer.formula]);
    typeset(status);
  }
}
