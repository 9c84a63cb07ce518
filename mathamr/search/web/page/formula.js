/* The formula editor beside the text box: both show the formula at the cursor, and each follows the other. */

import { byName } from "./shown.js";

/* The place of the formula of `text` that has the character at `cursor`, without its delimiters; null if none has. */
function formulaAt(text, cursor) {
  const found = findFormulas(text).find(({ start, end }) => cursor > start && cursor < end);
  return found === undefined ? null : { start: found.inner[0], end: found.inner[1] };
}

/* Connects the text box `query` with the editor; `changed` is called after the editor has written, `search` at Enter.
   Returns a function to call after the program has changed the text. */
export function connectEditor(query, changed, search) {
  const button = byName("edit-formula"), box = byName("editor-box");
  let frame = null, ready = false;
  let place = { start: 0, end: 0, bare: true }; // of the formula being written; bare: it has no delimiters yet

  const send = (message) => {
    if (ready) frame.contentWindow.postMessage(message, location.origin);
  };

  /* Shows the formula at the cursor in the editor. */
  function follow() {
    if (box.hidden) return;
    const cursor = query.selectionStart;
    const found = formulaAt(query.value, cursor);
    place = found ?? { start: cursor, end: cursor, bare: true };
    send({ latex: query.value.slice(place.start, place.end) });
  }

  function write(latex) {
    const { start, end, bare } = place;
    if (bare && latex === "") return;
    query.setRangeText(bare ? `$${latex}$` : latex, start, end, "end");
    place = bare ? { start: start + 1, end: start + 1 + latex.length } : { start, end: start + latex.length };
    query.setSelectionRange(place.end, place.end);
    changed();
  }

  function close() {
    box.hidden = true;
    button.setAttribute("aria-expanded", "false");
    query.focus();
    query.setSelectionRange(place.bare ? place.end : place.end + 1, place.bare ? place.end : place.end + 1);
  }

  button.addEventListener("click", () => {
    if (!box.hidden) {
      close();
      return;
    }
    box.hidden = false;
    button.setAttribute("aria-expanded", "true");
    if (frame === null) {
      frame = document.createElement("iframe");
      frame.title = "Formula editor";
      frame.src = "editor.html";
      box.prepend(frame);
    }
    follow();
    send({ focus: true });
  });

  addEventListener("message", ({ origin, source, data }) => {
    if (origin !== location.origin || source !== frame?.contentWindow) return;
    if (data.ready) {
      ready = true;
      follow();
      send({ focus: true });
    }
    if (typeof data.latex === "string") write(data.latex);
    if (data.key === "Enter") search();
    if (data.key === "Escape") close();
    if (data.keyboard !== undefined) frame.style.height = data.keyboard > 0 ? `calc(5rem + ${Number(data.keyboard)}px)` : "";
  });
  for (const event of ["keyup", "pointerup", "focus", "input"]) query.addEventListener(event, follow);
  return follow;
}
