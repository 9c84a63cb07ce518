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
const SIGN = /\\(?:begin|end)\{([A-Za-z]+\*?)\}|\\[^]|\$+|[{}]|\n[ \t\r]*\n/g; // what ends a formula, or may hinder it
const DISPLAYED = ["$$", "\\["];
// Those of graphs/corpus/text/text_formulas.py.
const ENVIRONMENTS = new Set(
  ("equation align aligned alignat alignedat gather gathered multline eqnarray flalign split displaymath math cases " +
    "array matrix pmatrix bmatrix vmatrix Vmatrix Bmatrix smallmatrix subequations IEEEeqnarray dcases CD").split(" "),
);
// What MathJax or packages of LaTeX have and KaTeX has not, or only in displayed equations. Labels name equations, which
// stand alone here.
const MACROS = {
  "\\label": "\\@firstoftwo{}{#1}",
  "\\require": "\\@firstoftwo{}{#1}",
  "\\ref": "\\@firstoftwo{\\ldots}{#1}",
  "\\eqref": "\\@firstoftwo{(\\ldots)}{#1}",
  "\\tag": "\\qquad\\text{(#1)}",
  "\\mbox": "\\text{#1}",
  "\\lbinom": "\\binom{#1}{#2}",
  "\\hfil": "\\;",
  "\\par": "\\;",
  "\\sech": "\\operatorname{sech}",
  "\\nicefrac": "{}^{#1}\\!/\\!{}_{#2}",
  "\\sfrac": "{}^{#1}\\!/\\!{}_{#2}",
  "\\widebar": "\\overline{#1}",
  "\\mathbbm": "\\mathbb{#1}",
  "\\mathbbmss": "\\mathbb{#1}",
  "\\mathds": "\\mathbb{#1}",
  "\\intertext": "\\text{#1}\\\\",
  "\\qedhere": "",
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
  const found = [], ends = endsOfFormulas(text);
  const opening = /\\\\|\\\$|\\\(|\\\[|\\begin\{([A-Za-z]+\*?)\}|\$\$|\$/g;
  for (let match = opening.exec(text); match !== null; match = opening.exec(text)) {
    const [token, environment] = match, start = match.index, inside = opening.lastIndex;
    const closing = ENVIRONMENTS.has(environment?.replace("*", "")) ? `\\end{${environment}}` : CLOSING[token];
    const close = ends.get(closing + inside);
    if (close === undefined || text.slice(inside, close).trim() === "") continue;
    const end = close + closing.length;
    if (token === "$" && isMoney(text.slice(inside, close), text.charAt(end))) continue;
    found.push({ start, end, inner: environment ? [start, end] : [inside, close], display: DISPLAYED.includes(token) });
    opening.lastIndex = end;
  }
  return found;
}

/* The end of each formula that may begin in `text`, by its closing sign and the place after its opening sign: the next
   closing sign outside of braces, before an empty line. Reads the text once, backwards; of the closing signs that follow,
   it keeps those with none before them that is less deep in braces, so the nearest is last and deepest. */
function endsOfFormulas(text) {
  const ends = new Map();
  let following = new Map(), depth = 0;
  const open = (closing, ...insides) => {
    const places = following.get(closing) ?? [];
    let low = 0, high = places.length; // of the places that are not deeper, the last is before `low`
    while (low < high) {
      const middle = (low + high) >> 1;
      if (places[middle].depth <= depth) low = middle + 1;
      else high = middle;
    }
    if (low > 0) for (const inside of insides) ends.set(closing + inside, places[low - 1].place);
  };
  const close = (closing, place) => {
    if (!following.has(closing)) following.set(closing, []);
    const places = following.get(closing);
    while (places.at(-1)?.depth >= depth) places.pop();
    places.push({ place, depth });
  };
  for (const { 0: sign, 1: environment, index } of [...text.matchAll(SIGN)].reverse()) {
    const end = index + sign.length;
    if (sign.startsWith("\n")) following = new Map();
    else if (sign === "}") depth += 1;
    else if (sign === "{") depth -= 1;
    else if (sign.startsWith("$")) {
      open("$", end);
      open("$$", end, end - 1); // of three dollars, the first two may be the sign
      close("$", index);
      if (sign.length > 1) close("$$", index);
    } else if (sign.startsWith("\\begin{")) open(`\\end{${environment}}`, end);
    else if (sign in CLOSING) open(CLOSING[sign], end);
    else close(sign, index);
  }
  return ends;
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
      place.dir = "ltr"; // also in Arabic or Hebrew text
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
  element.dir = "ltr"; // also in Arabic or Hebrew text
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
