const facts = JSON.parse(document.getElementById("facts").textContent);
const $ = (selector) => document.querySelector(selector);

// Elements are made from parts and texts only, never from markup, so that no name can become code.
function make(space, tag, attributes, children) {
  const element = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}
const h = (tag, attributes, ...children) => make(null, tag, attributes, children);
const s = (tag, attributes, ...children) => make("http://www.w3.org/2000/svg", tag, attributes, children);

const clip = (text, most) => { const letters = [...text]; return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : text; };
const isolate = (name) => `\u2068${name}\u2069`;  // a name written from right to left does not turn the words beside it
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const whole = (x) => Math.round(x).toLocaleString("en");
const percent = (x, digits = 1) => `${(100 * x).toFixed(digits)}\u00a0%`;
const plural = (n, word) => `${whole(n)} ${word}${n === 1 ? "" : "s"}`;
function figure(x) {
  if (x === null || x === undefined) return "";
  const size = Math.abs(x);
  if (size >= 10000 && size < 1e7) return whole(x);
  return size !== 0 && (size < 0.001 || size >= 1e7) ? x.toExponential(2) : String(Number(x.toPrecision(3)));
}
// A count beside an axis, where 150,000 has no room.
const axisCount = (x) => x >= 10000 ? x.toLocaleString("en", { notation: "compact" }) : String(x);
// Values are often thousandths; they are shown in a unit that leaves few zeros.
const UNIT = (() => {
  const most = Math.max(0, ...(facts.values || []).flatMap((v) => [...v.taken, ...v.left]).map(Math.abs));
  return most > 0 && most < 0.1 ? 3 * Math.ceil(-Math.log10(most) / 3) : 0;
})();
const POWER = UNIT ? `·10⁻${[...String(UNIT)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}` : "";
const inUnit = (x) => figure(x * 10 ** UNIT);
const withError = (value, stderr) => `${inUnit(value)}${stderr === null ? "" : ` ± ${Number((stderr * 10 ** UNIT).toPrecision(2))}`}`;
const colour = (index) => (index < 10 ? `var(--c${index})` : `hsl(${(index * 137.5) % 360} 55% 55%)`);
const dot = (index) => h("i", { class: "dot", style: `background:${colour(index)}`, "aria-hidden": "true" });
const className = (index) => facts.classes[index] ?? "a class the model has not learned";

const linear = ([a, b], [p, q]) => (x) => p + ((x - a) / (b - a || 1)) * (q - p);
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1) || 1;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * unit).find((m) => m >= rough * 0.999);
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) out.push(Number((i * step).toPrecision(10)));
  return out;
}

// One tooltip for all charts.
const tip = $("#tip");
function showTip(event, title, lines) {
  tip.replaceChildren(h("b", {}, title), ...lines.filter(Boolean).map((line) => h("div", {}, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const x = event.clientX + 14 + box.width > innerWidth ? event.clientX - 14 - box.width : event.clientX + 14;
  const y = event.clientY + 14 + box.height > innerHeight ? event.clientY - 14 - box.height : event.clientY + 14;
  tip.style.left = `${Math.max(4, x)}px`;
  tip.style.top = `${Math.max(4, y)}px`;
}
const hideTip = () => { tip.hidden = true; };
const tipped = (title, lines) => ({
  onpointermove: (event) => showTip(event, title, typeof lines === "function" ? lines() : lines),
  onpointerleave: hideTip,
});

// A chart is drawn for the width it has, and again when that changes.
function chart(holder, draw) {
  let last = 0;
  const again = () => {
    const width = Math.floor(holder.clientWidth);
    if (width > 0 && width !== last) { last = width; holder.replaceChildren(draw(width)); }
  };
  new ResizeObserver(again).observe(holder);
  again();
  return () => { last = 0; again(); };
}
function canvas(width, height, label, ...children) {
  return s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label }, ...children);
}
// A bar for every share: rows of a name, the share, its paint, and what a click on the name does.
function bars(rows) {
  return h("div", { class: "bars" }, rows.flatMap(([name, share, paint, act]) => [
    act ? h("button", { type: "button", class: "link name", onclick: act, title: name }, name) : h("span", { class: "name", title: name }, h("bdi", {}, name)),
    h("span", { class: "track" }, h("i", { style: `width:${(100 * share).toFixed(1)}%;background:${paint}` })), h("span", { class: "num" }, percent(share, 0))]));
}
function show(id, sub) {
  const section = document.getElementById(id);
  section.hidden = false;
  if (sub) section.querySelector(".sub").textContent = sub;
  return section;
}
$("#theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
