/* Typesets formulas with KaTeX. An element of the class "math" holds text with formulas between $, $$, \( \) or \[ \],
   or in environments; one of the class "latex" is a formula from end to end. What KaTeX cannot read stays as it was written.

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
const CLOSING = { "$$": "$$", "$": "$", "\\[": "\\]", "\\(": "\\)" };
const DISPLAYED = ["$$", "\\["];
// Those of graphs/corpus/text/text_formulas.py.
const ENVIRONMENTS = new Set(
  ("equation align aligned alignat alignedat gather gathered multline eqnarray flalign split displaymath math cases " +
    "array matrix pmatrix bmatrix vmatrix Vmatrix Bmatrix smallmatrix subequations IEEEeqnarray dcases CD").split(" "),
);
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

/* The formulas in running text, as the search reads them (text_formulas.py), but for dollars around plain words: `start`
   and `end` with the delimiters, `inner` the place without them. */
function findFormulas(text) {
  const found = [];
  const opening = /\\\\|\\\$|\\\(|\\\[|\\begin\{([A-Za-z]+\*?)\}|\$\$|\$/g;
  for (let match = opening.exec(text); match !== null; match = opening.exec(text)) {
    const [token, environment] = match, start = match.index, inside = opening.lastIndex;
    const closing = ENVIRONMENTS.has(environment?.replace("*", "")) ? `\\end{${environment}}` : CLOSING[token];
    const close = closing === undefined ? -1 : endOfFormula(text, inside, closing);
    if (close < 0 || text.slice(inside, close).trim() === "") continue;
    const end = close + closing.length;
    if (token === "$" && isMoney(text.slice(inside, close), text.charAt(end))) continue;
    found.push({ start, end, inner: environment ? [start, end] : [inside, close], display: DISPLAYED.includes(token) });
    opening.lastIndex = end;
  }
  return found;
}

/* The place of `closing` outside of braces, or -1; a formula ends before an empty line. */
function endOfFormula(text, start, closing) {
  let depth = 0;
  for (let place = start; place < text.length; place += 1) {
    if (depth <= 0 && text.startsWith(closing, place)) return place;
    if (text[place] === "\\") place += 1;
    else if (text[place] === "{") depth += 1;
    else if (text[place] === "}") depth -= 1;
    else if (text[place] === "\n" && /\n[ \t\r]*\n/y.test(text.slice(place, place + 99))) return -1;
  }
  return -1;
}

/* Whether dollars are of money: "$5 and $6", "from $ 5 to $ 6". */
function isMoney(inner, after) {
  const loose = inner.trim() !== inner;
  if (loose && !/[\\=^_<>+*/|{}(]/.test(inner)) return !/^[-−]?\s*[A-Za-z]'*$/.test(inner.trim());
  return /\d/.test(after) && (loose || /^\d/.test(inner) || /[-–/(,;]$/.test(inner));
}

/* Typesets the formulas in running text. */
function typesetText(element) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT), nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  for (const node of nodes) {
    const text = node.data, pieces = [];
    let position = 0;
    for (const { start, end, inner, display } of findFormulas(text)) {
      const place = document.createElement("span");
      try {
        const options = { ...OPTIONS, macros: { ...MACROS }, displayMode: display };
        katex.render(repaired(text.slice(...inner)), place, options);
      } catch {
        continue; // it stays as it was written, see typesetFormula
      }
      pieces.push(text.slice(position, start), place);
      position = end;
    }
    if (pieces.length > 0) node.replaceWith(...pieces, text.slice(position));
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
