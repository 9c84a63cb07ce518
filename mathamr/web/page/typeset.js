/* Typesets formulas with KaTeX. An element of the class "math" holds text with formulas between $, $$, \( \) or \[ \];
   one of the class "latex" is a formula from end to end. What KaTeX cannot read stays as it was written.

   Text gets into such elements by textContent alone: nothing here reads HTML. */
"use strict";

const OPTIONS = {
  throwOnError: true, // and the LaTeX is shown instead: KaTeX's own message needs a style attribute
  strict: "ignore", // posts are written for MathJax, which allows more
  trust: false, // no links, images, classes or styles out of a formula
  maxSize: 10, // em, so that no \rule covers the page
  maxExpand: 500, // macros of one formula
};
const DELIMITERS = [
  { left: "$$", right: "$$", display: true },
  { left: "\\[", right: "\\]", display: true },
  { left: "\\(", right: "\\)", display: false },
  { left: "$", right: "$", display: false },
];
// What MathJax has and KaTeX has not, or only in displayed equations. Labels name equations, which stand alone here.
const MACROS = {
  "\\label": "\\@firstoftwo{}{#1}",
  "\\require": "\\@firstoftwo{}{#1}",
  "\\ref": "\\@firstoftwo{\\ldots}{#1}",
  "\\eqref": "\\@firstoftwo{(\\ldots)}{#1}",
  "\\tag": "\\qquad\\text{(#1)}",
  "\\mbox": "\\text{#1}",
  "\\lbinom": "\\binom{#1}{#2}",
};
const ENVIRONMENT = /\\(begin|end)\{(align|gather|equation|multline|split|eqnarray)\*?\}/g;
const INLINE = { gather: "gathered", equation: "gathered", multline: "gathered" };

/* `latex` with displayed environments as those that may stand within a line. The official LaTeX of ARQMath has been
   through HTML once more than it should: there, "&amp;=" has become "& \displaystyle amp;=", and "<" is "&lt;". */
function inlined(latex) {
  const read = latex.replaceAll("\\displaystyle amp;", "\\displaystyle ").replaceAll("&lt;", "<").replaceAll("&gt;", ">");
  return read.replace(ENVIRONMENT, (_, side, name) => `\\${side}{${INLINE[name] ?? "aligned"}}`);
}

/* Typesets every formula of `root`, a document or an element, also the element itself. */
function typeset(root) {
  const within = (selector) => {
    const found = [...root.querySelectorAll(selector)];
    return root.matches?.(selector) ? [root, ...found] : found;
  };
  for (const element of within(".latex:not([data-typeset])")) typesetFormula(element);
  for (const element of within(".math:not([data-typeset])")) {
    element.dataset.typeset = "";
    renderMathInElement(element, {
      ...OPTIONS,
      macros: { ...MACROS },
      delimiters: DELIMITERS,
      preProcess: inlined,
      errorCallback: () => {},
    });
  }
}

function typesetFormula(element) {
  element.dataset.typeset = "";
  const source = element.textContent;
  try {
    katex.render(inlined(source), element, { ...OPTIONS, macros: { ...MACROS } });
  } catch (error) {
    if (!(error instanceof katex.ParseError)) throw error;
    element.textContent = source;
  }
}
