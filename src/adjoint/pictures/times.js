"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const flame = document.querySelector(".flame"), bars = [...flame.querySelectorAll(".bar")], WIDTH = flame.viewBox.baseVal.width;

// --- the flame graph: the bar that is clicked takes the whole width ---

function widen(from, wide) {
  for (const bar of bars) {
    const x = (Number(bar.dataset.x) - from) / wide * WIDTH, w = Number(bar.dataset.w) / wide * WIDTH;
    const left = Math.max(0, x), right = Math.min(WIDTH, x + w), seen = right - left > .2;
    bar.style.display = seen ? "" : "none";
    if (!seen) continue;
    const [, rect, text] = bar.children, fits = Math.floor((right - left - 6) / 6.3), name = bar.dataset.name;
    rect.setAttribute("x", left);
    rect.setAttribute("width", Math.max(.3, right - left - .5));
    text.setAttribute("x", left + 3);
    text.textContent = name.length <= fits ? name : fits > 2 ? name.slice(0, fits - 1) + "…" : "";
  }
}
for (const bar of bars) bar.onclick = () => widen(Number(bar.dataset.x), Number(bar.dataset.w));

// --- the time line: a row for each thread ---

const sheet = document.getElementById("times"), said = document.getElementById("said"), ROW = 26, AXIS = 18;
const end = Math.max(1, ...data.calls.map(call => call[2] + call[3]));
let from = 0, to = end;
const long = ns => ns >= 1e9 ? (ns / 1e9).toPrecision(3) + " s" : ns >= 1e6 ? (ns / 1e6).toPrecision(3) + " ms" : (ns / 1e3).toPrecision(3) + " µs";

function draw() {
  const w = sheet.clientWidth, h = AXIS + ROW * Math.max(1, data.threads.length), sharp = window.devicePixelRatio || 1;
  [sheet.width, sheet.height] = [w * sharp, h * sharp];
  sheet.style.height = h + "px";
  const pen = sheet.getContext("2d"), one = w / (to - from);
  pen.scale(sharp, sharp);
  pen.font = "10.5px ui-monospace, monospace";
  for (const [name, phase, start, time, thread] of data.calls) {
    const x = (start - from) * one, wide = Math.max(.5, time * one - .5);
    if (x + wide < 0 || x > w) continue;
    pen.fillStyle = data.colours[phase];
    pen.fillRect(x, AXIS + thread * ROW, wide, ROW - 4);
    if (wide > 24) {
      pen.save();
      pen.beginPath();
      pen.rect(x, AXIS + thread * ROW, wide - 2, ROW);
      pen.clip();
      pen.fillStyle = "#1a1d21";
      pen.fillText(name, Math.max(x, 0) + 3, AXIS + thread * ROW + 15);
      pen.restore();
    }
  }
  pen.fillStyle = getComputedStyle(document.body).color;
  for (let k = 0; k < 5; k++) pen.fillText(long(from + (to - from) * k / 5), w * k / 5 + 2, 11);
}
sheet.addEventListener("wheel", event => {
  const place = event.offsetX / sheet.clientWidth, mid = from + place * (to - from);
  const wide = Math.min(end, (to - from) * (event.deltaY > 0 ? 1.25 : .8));
  from = Math.max(0, Math.min(mid - place * wide, end - wide));
  to = from + wide;
  draw();
  event.preventDefault();
}, {passive: false});
sheet.addEventListener("pointermove", event => {
  if (event.buttons) {
    const by = Math.max(-from, Math.min(end - to, -event.movementX / sheet.clientWidth * (to - from)));
    from += by;
    to += by;
    draw();
  }
  const time = from + event.offsetX / sheet.clientWidth * (to - from), row = Math.floor((event.offsetY - AXIS) / ROW);
  const call = data.calls.find(c => c[4] === row && c[2] <= time && time <= c[2] + c[3]);
  said.textContent = call ? `${call[0]} ${call[1]}, ${long(call[3])} at ${long(call[2])}: ${call[5]}` : "Scroll to zoom, drag to move.";
});
window.addEventListener("resize", draw);
draw();
