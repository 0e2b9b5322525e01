"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = id => document.getElementById(id);
const boxes = data.boxes, canvas = at("canvas"), facts = at("facts");
const backward = boxes.map((_, k) => k).filter(k => boxes[k].gradient !== undefined).reverse();
const readers = boxes.map(() => []);
boxes.forEach((box, k) => (box.parents || []).forEach(p => readers[p].push(k)));
let view = null, chosen = null, step = 0;

function make(tag, text, click) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (click) made.onclick = click;
  return made;
}
const nameOf = k => boxes[k].label || boxes[k].name;
const svgNow = () => canvas.querySelector("svg");

// --- views: a group that is open ---

function open(number) {
  view = number;
  canvas.innerHTML = at("view" + number).textContent;  // text until then, so that large pages open at once
  const path = [];
  for (let k = number; k !== null; k = data.groups[k].above) path.unshift(k);
  at("path").hidden = path.length < 2;
  at("path").replaceChildren(...path.flatMap((k, i) => [
    ...(i ? [" › "] : []), k === number ? make("b", data.groups[k].name) : make("button", data.groups[k].name, () => open(k))]));
  colour();
  fit();
  if (frame().height > canvas.clientHeight * 2.2) fromTop();
  mark();
}

function colour() {
  const by = at("colour").value;
  for (const face of canvas.querySelectorAll(".face")) face.setAttribute("fill", face.dataset[by] || "none");
  const ends = data.scales[by] || [];
  at("scale").replaceChildren(...(ends.length ? [ends[0], make("i", ""), ends[1]] : []));
}

function choose(k, travel) {
  chosen = k;
  if (travel && boxes[k].view !== view) open(boxes[k].view);
  mark();
  if (travel) reveal();
  tell(k);
}

function mark() {
  for (const card of canvas.querySelectorAll(".card")) {
    const own = card.dataset.box !== undefined && !card.classList.contains("port");
    card.classList.toggle("chosen", own && Number(card.dataset.box) === chosen);
    card.classList.toggle("later", own && later(Number(card.dataset.box)));
  }
}

// What a step has not come to yet: values in forward, gradients in backward.
function later(k) {
  if (!step) return false;
  if (step <= boxes.length) return k >= step;
  const place = backward.indexOf(k);
  return place < 0 || place >= step - boxes.length;
}

function tell(k) {
  const box = boxes[k], list = make("dl", "");
  const going = step > boxes.length;
  const row = (name, value) => {
    if (value === undefined) return;
    list.append(make("dt", name));
    const cell = make("dd", "");
    cell.append(...[value].flat());
    list.append(cell);
  };
  const links = numbers => numbers.length ? numbers.map(n => make("button", nameOf(n), () => choose(n, true))) : undefined;
  if (box.label) row("what", box.name);
  if (box.kind === "cut") row("cut", "its result is a constant: no gradient passes");
  row("shape", box.shape + (box.dtype ? " " + box.dtype : ""));
  row("value", box.value);
  if (!step || going) {
    row("gradient", box.gradient);
    row("its size", box.size);
  }
  row("keeps", box.bytes && (box.keeps ? box.keeps + ", " : "") + box.bytes);
  row("line", box.line);
  row(going ? "pulls back to" : "reads", links(box.parents || []));
  row(going ? "gathered from" : "is read by", links(readers[k]));
  facts.replaceChildren(make("h2", nameOf(k)), list);
}

canvas.addEventListener("click", event => {
  const card = event.target.closest(".card");
  if (!card || moved) return;
  if (card.dataset.opens !== undefined) open(Number(card.dataset.opens));
  else if (card.dataset.box !== undefined) choose(Number(card.dataset.box), card.classList.contains("port"));
});
canvas.addEventListener("keydown", event => {
  if (event.key === "Enter" || event.key === " ") { moved = false; event.target.dispatchEvent(new MouseEvent("click", {bubbles: true})); event.preventDefault(); }
});

// --- zoom ---

let moved = false, drag = null;
const frame = () => svgNow().viewBox.baseVal;

function fit() {
  const svg = svgNow(), whole = svg.getAttribute("viewBox").split(" ").map(Number);
  svg.dataset.whole ??= whole.join(" ");
  const [x, y, w, h] = svg.dataset.whole.split(" ").map(Number);
  const wide = Math.max(w, canvas.clientWidth / 1.5), high = Math.max(h, canvas.clientHeight / 1.5);  // small graphs are not blown up
  svg.setAttribute("viewBox", [x - (wide - w) / 2, y - (high - h) / 2, wide, high].join(" "));
}
function fromTop() {  // of a graph that is too tall to be read as a whole
  const f = frame(), h = canvas.clientHeight * 1.4, w = canvas.clientWidth * 1.4;
  svgNow().setAttribute("viewBox", [f.x + (f.width - w) / 2, f.y, w, h].join(" "));
}
function zoom(by, px = .5, py = .5) {
  const f = frame(), w = f.width * by, h = f.height * by;
  svgNow().setAttribute("viewBox", [f.x + (f.width - w) * px, f.y + (f.height - h) * py, w, h].join(" "));
}
function reveal() {
  const card = canvas.querySelector(".chosen .face");
  if (!card) return;
  const f = frame(), r = card.getBBox(), x = r.x + r.width / 2, y = r.y + r.height / 2;
  const most = canvas.clientHeight * 1.6;  // a box that cannot be read is not found
  const h = Math.min(f.height, most), w = f.width * h / f.height;
  const inside = x > f.x && x < f.x + f.width && y > f.y && y < f.y + f.height && h === f.height;
  if (!inside) svgNow().setAttribute("viewBox", [x - w / 2, y - h / 2, w, h].join(" "));
}
canvas.addEventListener("wheel", event => {
  const r = canvas.getBoundingClientRect();
  zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, (event.clientX - r.left) / r.width, (event.clientY - r.top) / r.height);
  event.preventDefault();
}, {passive: false});
canvas.addEventListener("pointerdown", event => { drag = [event.clientX, event.clientY]; moved = false; });
window.addEventListener("pointermove", event => {
  if (!drag) return;
  const f = frame(), one = svgNow().getScreenCTM().a, dx = event.clientX - drag[0], dy = event.clientY - drag[1];
  if (Math.abs(dx) + Math.abs(dy) > 4) moved = true;
  if (!moved) return;
  svgNow().setAttribute("viewBox", [f.x - dx / one, f.y - dy / one, f.width, f.height].join(" "));
  drag = [event.clientX, event.clientY];
});
window.addEventListener("pointerup", () => { drag = null; });
at("in").onclick = () => zoom(1 / 1.3);
at("out").onclick = () => zoom(1.3);
at("fit").onclick = fit;
at("colour").onchange = colour;

// --- forward and backward, one primitive at a time ---

const steps = boxes.length + backward.length;
at("step").max = steps;
function go(to) {
  step = Math.max(0, Math.min(steps, to));
  at("step").value = step;
  const forward = step <= boxes.length;
  at("said").textContent = !backward.length ? (step ? `${step} of ${boxes.length}` : `${boxes.length} steps`)
    : !step ? `${boxes.length} forward, ${backward.length} backward`
    : forward ? `forward ${step} of ${boxes.length}` : `backward ${step - boxes.length} of ${backward.length}`;
  if (step) choose(forward ? step - 1 : backward[step - boxes.length - 1], true);
  else mark();
}
at("first").onclick = () => go(0);
at("back").onclick = () => go(step - 1);
at("next").onclick = () => go(step + 1);
at("last").onclick = () => go(steps);
at("step").oninput = () => go(Number(at("step").value));
window.addEventListener("keydown", event => {
  if (/INPUT|SELECT/.test(event.target.tagName)) return;
  if (event.key === "ArrowRight") go(step + 1);
  else if (event.key === "ArrowLeft") go(step - 1);
  else if (event.key === "Escape" && data.groups[view].above !== null) open(data.groups[view].above);
  else if (event.key === "/") at("find").focus();
  else return;
  event.preventDefault();
});

// --- search ---

at("find").oninput = () => {
  const wanted = at("find").value.trim().toLowerCase();
  if (!wanted) return;
  const found = boxes.map((_, k) => k).filter(k => [nameOf(k), boxes[k].name, boxes[k].shape, boxes[k].line || ""].some(t => t.toLowerCase().includes(wanted)));
  const list = make("ul", "");
  for (const k of found.slice(0, 50)) {
    const item = make("li", "");
    item.append(make("button", nameOf(k), () => choose(k, true)), `${boxes[k].shape} ${boxes[k].line ? boxes[k].line.split("/").pop() : ""}`);
    list.append(item);
  }
  facts.replaceChildren(make("h2", `${found.length} found`), list);
};
at("find").onkeydown = event => { if (event.key === "Enter") facts.querySelector("li button")?.click(); };

// --- export ---

function picture() {
  const svg = svgNow().cloneNode(true), [, , w, h] = svg.dataset.whole.split(" ");
  svg.setAttribute("viewBox", svg.dataset.whole);
  svg.setAttribute("width", w);
  svg.setAttribute("height", h);
  return [new XMLSerializer().serializeToString(svg), Number(w), Number(h)];
}
function keep(blob, name) {
  const link = make("a", "");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
function png(done) {
  const [text, w, h] = picture(), image = new Image(), scale = Math.min(2, 8000 / Math.max(w, h));
  image.onload = () => {
    const sheet = make("canvas", ""), pen = sheet.getContext("2d");
    [sheet.width, sheet.height] = [w * scale, h * scale];
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, sheet.width, sheet.height);
    pen.drawImage(image, 0, 0, sheet.width, sheet.height);
    sheet.toBlob(done);
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
}
at("svg").onclick = () => keep(new Blob([picture()[0]], {type: "image/svg+xml"}), "graph.svg");
at("png").onclick = () => png(blob => keep(blob, "graph.png"));

for (const option of [...at("colour").options]) if (!data.colours.includes(option.value)) option.remove();
open(data.top);
go(0);
