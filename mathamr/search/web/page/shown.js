/* Pieces that the page is made of. All text goes in by textContent or as text nodes. */

export const byName = (id) => document.getElementById(id);

export function element(name, text = "", style = "") {
  const made = document.createElement(name);
  made.textContent = text;
  made.className = style;
  return made;
}

/* Appends words and formulas, as the server sends them, to `place`; typeset() then sets the formulas. */
export function showParts(place, parts) {
  for (const part of parts) {
    if (typeof part === "string") place.append(part);
    else place.append(element("span", part.latex, part.found ? "latex found" : "latex"));
  }
  return place;
}

const MATHML = "http://www.w3.org/1998/Math/MathML";
const MATHML_ELEMENTS = new Set(
  ("math mrow mi mn mo mtext mfrac msqrt mroot msub msup msubsup munder mover munderover mmultiscripts mprescripts " +
    "mtable mtr mtd").split(" "),
);
const ROLES = new Set(["equal", "renamed", "changed"]);

/* A formula as MathML, of elements as the server sends them; each symbol has the class of its role in the match. */
export function drawing({ tag, role, text, children }) {
  const made = document.createElementNS(MATHML, MATHML_ELEMENTS.has(tag) ? tag : "mtext");
  if (ROLES.has(role)) made.classList.add(role);
  if (children === undefined) made.textContent = text ?? "";
  else made.append(...children.map(drawing));
  return made;
}

/* A bar that is full at a similarity of 1; the number stands beside it, so it says nothing to a screen reader. */
export function similarityBar(similarity) {
  const bar = element("span", "", "bar");
  bar.setAttribute("aria-hidden", "true");
  bar.style.setProperty("--share", String(Math.max(0, Math.min(1, similarity))));
  return bar;
}
