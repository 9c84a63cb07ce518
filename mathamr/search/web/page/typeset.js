/* Typesets formulas with KaTeX. An element of the class "math" holds text with formulas between $, $$, \( \) or \[ \];
   one of the class "latex" is a formula from end to end. What KaTeX cannot read stays as it was written.

   Text gets into such elements by textContent alone: nothing here reads HTML. */
"use strict";

const OPTIONS = {
  errorColor: "var(--wrong, #cc0000)", // of commands that it does not know
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
  "\\hfil": "\\;",
};
// Displayed environments, as those that may stand within a line.
const ENVIRONMENT = /\\(begin|end)\{(align|gather|equation|multline|split|eqnarray)\*?\}/g;
const INLINE = { gather: "gathered", equation: "gathered", multline: "gathered" };
// The official LaTeX of ARQMath comes from LaTeXML: it has options that KaTeX does not read, has been through HTML once
// too often ("&amp;=" has become "& \displaystyle amp;="), and a space at its end has left a backslash alone.
const REPAIRS = [
  [/\\displaystyle amp;/g, "\\displaystyle "],
  [/&lt;/g, "<"],
  [/&gt;/g, ">"],
  [/\\begin\{array\}\s*\[[^\]]*\]/g, "\\begin{array}"],
  [/\\color\s*\[\w+\]\{[^}]*\}/g, ""],
  [/(?<!\\)((?:\\\\)*)\\$/, "$1"],
  [ENVIRONMENT, (_, side, name) => `\\${side}{${INLINE[name] ?? "aligned"}}`],
];
const MAX_UNKNOWN = 20; // commands of one formula that KaTeX does not know

/* `latex` as KaTeX reads it. */
function repaired(latex) {
  return REPAIRS.reduce((text, [pattern, better]) => text.replace(pattern, better), latex);
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
    typesetText(element);
  }
}

/* Typesets the formulas in running text. */
function typesetText(element) {
  const options = { ...OPTIONS, macros: { ...MACROS }, delimiters: DELIMITERS, preProcess: repaired };
  try {
    renderMathInElement(element, { ...options, errorCallback: () => {} });
  } catch {
    // What was not reached stays as it was written, see typesetFormula.
  }
}

/* Typesets a formula. A command that KaTeX does not know, such as a macro of the site, is written out within it. */
function typesetFormula(element) {
  element.dataset.typeset = "";
  const source = element.textContent;
  const macros = { ...MACROS };
  for (let unknown = 0; unknown <= MAX_UNKNOWN; unknown += 1) {
    try {
      katex.render(repaired(source), element, { ...OPTIONS, macros: { ...macros } });
      return;
    } catch (error) {
      // Not always a ParseError: some LaTeX is beyond KaTeX's own checks.
      const command = /^Undefined control sequence: \\([A-Za-z@]+)$/.exec(error.rawMessage ?? "")?.[1];
      if (command === undefined) break;
      macros[`\\${command}`] = `\\mathtt{\\backslash ${command}}`;
    }
  }
  element.textContent = source;
}
