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

/* A bar that is full at a similarity of 1; the number stands beside it, so it says nothing to a screen reader. */
export function similarityBar(similarity) {
  const bar = element("span", "", "bar");
  bar.setAttribute("aria-hidden", "true");
  bar.style.setProperty("--share", String(Math.max(0, Math.min(1, similarity))));
  return bar;
}
