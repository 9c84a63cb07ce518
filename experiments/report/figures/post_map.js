/* A map of posts: points that readers move, enlarge and ask for their titles. Draws into an image, not shape by shape,
   so 100,000 points take a few milliseconds. Reads <script type="application/json" class="map-data">. */

"use strict";

const MAP_COLOURS = [[0, 0, 0], [230, 159, 0], [86, 180, 233], [0, 158, 115], [0, 114, 178], [213, 94, 0], [204, 121, 167], [240, 228, 66]];
const MAP_REST = [150, 150, 150], MAP_REACH = 10, MAP_LISTED = 100, MAP_EDGE = 1.08;
/* Shapes differ in grey as well: [x, y] inside a square of side 2. */
const MAP_SHAPES = [
  (x, y) => x * x + y * y <= 1, (x, y) => Math.max(Math.abs(x), Math.abs(y)) <= 0.8,
  (x, y) => y <= 0.8 && y >= 1.9 * Math.abs(x) - 0.9, (x, y) => Math.abs(x) + Math.abs(y) <= 1,
  (x, y) => y >= -0.8 && y <= 0.9 - 1.9 * Math.abs(x), (x, y) => Math.min(Math.abs(x), Math.abs(y)) <= 0.34,
  (x, y) => Math.abs(Math.abs(x) - Math.abs(y)) <= 0.4, (x, y) => Math.abs(y) <= 0.45,
];

class PostMap {
  constructor(figure) {
    this.figure = figure;
    this.data = JSON.parse(figure.querySelector(".map-data").textContent);
    this.canvas = figure.querySelector("canvas");
    this.status = figure.querySelector(".map-status");
    this.shown = this.data.names.map(() => true);
    this.decoded = new Map();
    this.frames = 0;
    this.found = -1;
    figure.querySelector(".map-live").hidden = false;
    this.choices();
    this.legend();
    this.pointers();
    this.keys();
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
    this.whole();
  }

  one(selector) { return this.figure.querySelector(selector); }

  choices() {
    const [label, method] = [this.one(".map-label"), this.one(".map-method")];
    for (const [select, key] of [[label, "label"], [method, "method"]]) {
      const names = [...new Set(this.data.views.map((view) => view[key]))];
      select.append(...names.map((name) => new Option(name, name)));
      select.addEventListener("change", () => this.choose(key));
    }
    this.choose("label");
  }

  /* Show the chosen view; of a method that the condition lacks, its first. */
  choose(changed) {
    const [label, method] = [this.one(".map-label"), this.one(".map-method")];
    const fitting = this.data.views.filter((view) => view[changed] === (changed === "label" ? label : method).value);
    this.view = fitting.find((view) => view.label === label.value && view.method === method.value) || fitting[0];
    label.value = this.view.label;
    method.value = this.view.method;
    if (!this.decoded.has(this.view)) {
      const bytes = Uint8Array.from(atob(this.view.places), (letter) => letter.charCodeAt(0));
      this.decoded.set(this.view, new Int16Array(bytes.buffer));
    }
    this.places = this.decoded.get(this.view);
    this.whole();
  }

  post(point) { return this.view.posts ? this.view.posts[point] : point; }
  group(point) { return this.data.groups[this.post(point)]; }
  colour(group) { return /^(other tags|no tag)$/.test(this.data.names[group]) ? MAP_REST : MAP_COLOURS[group % 8]; }

  legend() {
    const place = this.one(".map-legend");
    this.data.names.forEach((name, group) => {
      const label = document.createElement("label"), box = document.createElement("input"), swatch = document.createElement("canvas");
      box.type = "checkbox";
      box.checked = true;
      box.addEventListener("change", () => { this.shown[group] = box.checked; this.redraw(); });
      swatch.width = swatch.height = 13;
      swatch.setAttribute("aria-hidden", "true");
      const image = new ImageData(13, 13);
      this.stamp(new Uint32Array(image.data.buffer), 13, 13, 6, 6, this.mask(group, 6), this.ink(group));
      swatch.getContext("2d").putImageData(image, 0, 0);
      label.append(box, swatch, ` ${name}`);
      place.append(label);
    });
    for (const [selector, value] of [[".map-all", true], [".map-none", false]]) {
      this.one(selector).addEventListener("click", () => {
        place.querySelectorAll("input").forEach((box) => { box.checked = value; });
        this.shown.fill(value);
        this.redraw();
      });
    }
  }

  /* Offsets of a group's shape in pixels. */
  mask(group, radius) {
    const offsets = [];
    for (let y = -radius; y <= radius; y++)
      for (let x = -radius; x <= radius; x++)
        if (MAP_SHAPES[group % 8](x / (radius + 0.4), y / (radius + 0.4))) offsets.push(x, y);
    return offsets;
  }

  ink(group) {
    const [red, green, blue] = this.colour(group);
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  }

  stamp(pixels, width, height, x, y, offsets, ink) {
    for (let i = 0; i < offsets.length; i += 2) {
      const column = x + offsets[i], row = y + offsets[i + 1];
      if (column >= 0 && column < width && row >= 0 && row < height) pixels[row * width + column] = ink;
    }
  }

  whole() {
    [this.x, this.y, this.zoom] = [0, 0, 1];
    this.redraw();
  }

  /* Draw at the next frame, however many changes come before it. */
  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  measure() {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(this.canvas.clientWidth * ratio), Math.round(this.canvas.clientHeight * ratio)];
    return { ratio, width, height, scale: (this.zoom * Math.min(width, height)) / (2 * MAP_EDGE * 32767) };
  }

  draw() {
    const { ratio, width, height, scale } = this.measure();
    if (!width || !height) return;
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    const image = new ImageData(width, height), pixels = new Uint32Array(image.data.buffer);
    const count = this.places.length / 2, crowd = Math.sqrt(count / this.zoom / this.zoom);
    const radius = Math.max(1, Math.round(ratio * (crowd > 250 ? 1 : crowd > 80 ? 2 : 4)));
    const masks = this.data.names.map((_, group) => this.mask(group, radius));
    const inks = this.data.names.map((_, group) => this.ink(group));
    let drawn = 0;
    for (const rest of [true, false]) { // named tags lie above the rest
      for (let point = 0; point < count; point++) {
        const group = this.group(point);
        if (!this.shown[group] || (this.colour(group) === MAP_REST) !== rest) continue;
        const x = Math.round(width / 2 + (this.places[2 * point] - this.x) * scale);
        const y = Math.round(height / 2 - (this.places[2 * point + 1] - this.y) * scale);
        if (x < -radius || y < -radius || x > width + radius || y > height + radius) continue;
        this.stamp(pixels, width, height, x, y, masks[group], inks[group]);
        drawn++;
      }
    }
    const context = this.canvas.getContext("2d");
    context.putImageData(image, 0, 0);
    if (this.found >= 0) this.ring(context, scale, width, height, ratio);
    this.canvas.dataset.frames = ++this.frames;
    this.canvas.dataset.drawn = drawn;
    const text = `${drawn.toLocaleString("en")} of ${count.toLocaleString("en")} posts in view`;
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  ring(context, scale, width, height, ratio) {
    context.beginPath();
    context.arc(width / 2 + (this.places[2 * this.found] - this.x) * scale, height / 2 - (this.places[2 * this.found + 1] - this.y) * scale, 8 * ratio, 0, 7);
    context.lineWidth = 2 * ratio;
    context.stroke();
  }

  /* Enlarge around a point of the canvas (CSS pixels from its corner); without one, around the middle. */
  enlarge(factor, at) {
    const { ratio, width, height, scale } = this.measure();
    const right = at ? at[0] * ratio - width / 2 : 0, down = at ? at[1] * ratio - height / 2 : 0;
    const zoom = Math.min(500, Math.max(1, this.zoom * factor)), ahead = scale * (zoom / this.zoom);
    this.x += right / scale - right / ahead;
    this.y -= down / scale - down / ahead;
    this.zoom = zoom;
    this.bound();
  }

  move(right, down) {
    const { ratio, scale } = this.measure();
    this.x -= (right * ratio) / scale;
    this.y += (down * ratio) / scale;
    this.bound();
  }

  bound() {
    [this.x, this.y] = [this.x, this.y].map((value) => Math.min(32767, Math.max(-32767, value)));
    this.redraw();
  }

  nearest(x, y) {
    const { ratio, width, height, scale } = this.measure();
    const [wantedX, wantedY] = [this.x + (x * ratio - width / 2) / scale, this.y - (y * ratio - height / 2) / scale];
    let best = ((MAP_REACH * ratio) / scale) ** 2, found = -1;
    for (let point = 0; point < this.places.length / 2; point++) {
      const distance = (this.places[2 * point] - wantedX) ** 2 + (this.places[2 * point + 1] - wantedY) ** 2;
      if (distance < best && this.shown[this.group(point)]) [best, found] = [distance, point];
    }
    return found;
  }

  pointers() {
    const note = this.one(".map-note"), held = new Map();
    const at = (event) => { const box = this.canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    this.canvas.addEventListener("pointerdown", (event) => { held.set(event.pointerId, at(event)); this.canvas.setPointerCapture(event.pointerId); });
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, (event) => held.delete(event.pointerId));
    this.canvas.addEventListener("pointermove", (event) => {
      const [x, y] = at(event), last = held.get(event.pointerId);
      if (!last) return this.tell(this.nearest(x, y), [x, y]);
      const other = [...held].find(([id]) => id !== event.pointerId);
      if (other) { // two fingers
        const apart = ([left, top]) => Math.hypot(left - other[1][0], top - other[1][1]);
        this.enlarge(apart([x, y]) / Math.max(1, apart(last)), [(x + other[1][0]) / 2, (y + other[1][1]) / 2]);
      } else this.move(x - last[0], y - last[1]);
      held.set(event.pointerId, [x, y]);
      note.hidden = true;
    });
    this.canvas.addEventListener("pointerleave", () => this.tell(-1));
    this.canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== this.canvas && !event.ctrlKey) return; // the page scrolls
      event.preventDefault();
      this.enlarge(Math.exp(-event.deltaY / 400), at(event));
    }, { passive: false });
    this.one(".map-in").addEventListener("click", () => this.enlarge(1.5));
    this.one(".map-out").addEventListener("click", () => this.enlarge(1 / 1.5));
    this.one(".map-whole").addEventListener("click", () => this.whole());
    this.one(".map-list").addEventListener("click", () => this.list());
  }

  keys() {
    const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    this.canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      if (steps[event.key]) this.move(...steps[event.key]);
      else if ("+=".includes(event.key)) this.enlarge(1.5);
      else if (event.key === "-") this.enlarge(1 / 1.5);
      else if (event.key === "0") this.whole();
      else if (event.key === "Enter") this.list();
      else return;
      event.preventDefault();
    });
  }

  words(point) {
    const post = this.post(point);
    return [this.data.posts[post], this.data.titles[post] || "(no title)", this.data.names[this.data.groups[post]]];
  }

  tell(point, at) {
    const note = this.one(".map-note");
    if (point !== this.found) { this.found = point; this.redraw(); }
    note.hidden = point < 0;
    if (point < 0) return;
    const [id, title, tag] = this.words(point);
    note.textContent = `${title}\nPost ${id}, ${tag}`;
    note.style.left = `${Math.min(at[0] + 14, Math.max(0, this.canvas.clientWidth - 280))}px`;
    note.style.top = `${at[1] + 14}px`;
  }

  /* A table of the posts in view, nearest to the middle first: for readers who do not see the map. */
  list() {
    const { width, height, scale } = this.measure(), [right, up] = [width / 2 / scale, height / 2 / scale], inside = [];
    for (let point = 0; point < this.places.length / 2; point++) {
      const [x, y] = [Math.abs(this.places[2 * point] - this.x), Math.abs(this.places[2 * point + 1] - this.y)];
      if (x <= right && y <= up && this.shown[this.group(point)]) inside.push([x * x + y * y, point]);
    }
    inside.sort((one, other) => one[0] - other[0]);
    const table = document.createElement("table"), listed = inside.slice(0, MAP_LISTED);
    table.createCaption().textContent = `${listed.length} of ${inside.length.toLocaleString("en")} posts in view, from the middle`;
    const head = table.createTHead().insertRow();
    for (const name of ["Post", "Title", "Tag"]) head.append(Object.assign(document.createElement("th"), { textContent: name, scope: "col" }));
    const body = table.createTBody();
    for (const [, point] of listed) {
      const row = body.insertRow();
      for (const text of this.words(point)) row.insertCell().textContent = text;
    }
    this.one(".map-posts").replaceChildren(table);
  }
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("figure.map").forEach((figure) => new PostMap(figure)));
