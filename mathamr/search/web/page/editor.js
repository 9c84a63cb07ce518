/* The document in the frame: MathLive, which sends what is written in it to the page as LaTeX. */

import { MathfieldElement } from "./mathlive/mathlive.min.mjs";

MathfieldElement.fontsDirectory = null; // the style sheet of KaTeX has the fonts
MathfieldElement.soundsDirectory = null;
MathfieldElement.keypressSound = null;
MathfieldElement.plonkSound = null;

const field = document.getElementById("formula");
await customElements.whenDefined("math-field");
field.mathVirtualKeyboardPolicy = "sandboxed"; // within the frame
field.menuItems = [];
field.popoverPolicy = "off"; // nothing that the frame would cut off
field.environmentPopoverPolicy = "off";

/* MathLive's own commands, as other programs write them. */
const COMMANDS = [
  [/\\(?:differentialD|capitalDifferentialD)\b\s*/g, (command) => (command.includes("capital") ? "D " : "d ")],
  [/\\imaginaryI\b\s*/g, () => "i "],
  [/\\exponentialE\b\s*/g, () => "e "],
  [/\\m(left|right)\b/g, (_, side) => `\\${side}`],
];

function latex() {
  const written = field.getValue("latex-without-placeholders");
  return COMMANDS.reduce((text, [command, plain]) => text.replace(command, plain), written).trim();
}

const send = (message) => parent.postMessage(message, location.origin);

field.addEventListener("input", () => send({ latex: latex() }));
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && field.mode === "math") {
    event.preventDefault();
    send({ key: "Enter" });
  } else if (event.key === "Escape" && field.mode === "math") {
    event.preventDefault();
    send({ key: "Escape" });
  }
}, { capture: true });

const keyboard = window.mathVirtualKeyboard;
const room = () => send({ keyboard: keyboard.visible ? Math.ceil(keyboard.boundingRect.height) : 0 });
keyboard.addEventListener("geometrychange", room);

addEventListener("message", ({ origin, source, data }) => {
  if (origin !== location.origin || source !== parent) return;
  if (typeof data.latex === "string" && data.latex !== latex()) field.setValue(data.latex, { silenceNotifications: true });
  if (data.focus) field.focus();
});
send({ ready: true });
