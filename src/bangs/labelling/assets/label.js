// The page asks the server for its state and shows it; it remembers nothing that matters.
let state = null, busy = false, shown = "";
const place = location.pathname;
const index = (name) => state.classes.indexOf(name);
const shadeOf = (name) => (index(name) < 0 ? "var(--mute)" : colour(index(name)));

function notice(words) {
  const box = $("#notice");
  box.textContent = words;
  box.hidden = !words;
}

async function talk(path, body) {
  const answer = await fetch(place + path, body === undefined ? { cache: "no-store" } :
    { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const kind = answer.headers.get("Content-Type") || "";
  if (!kind.startsWith("application/json")) throw new Error((await answer.text()).trim());
  const found = await answer.json();
  if (answer.ok) return { state: found };
  return { state: found.state || state, error: found.error };
}

async function act(path, more) {
  if (busy || !state) return;
  busy = true;
  try {
    const found = await talk(path, { number: state.number, ...more });
    notice(found.error || "");
    take(found.state);
  } catch (error) {
    notice(error.message && !/fetch/i.test(error.message) ? error.message : "The server does not answer. Every answer that was shown here is on the disk; start `bangs label` again.");
  }
  busy = false;
}
const answer = (label) => { if (state && state.card && !state.read_only) act("label", { node: state.card.node, label }); };
const skip = () => { if (state && state.card && !state.read_only) act("skip", { node: state.card.node }); };
const undo = () => { if (state && !state.read_only) act("undo", {}); };

function take(found) {
  state = found;
  const key = JSON.stringify(found);
  if (key === shown) return;
  shown = key;
  draw();
}

function draw() {
  const card = state.card;
  $("#status").textContent = state.read_only ? "reading only" : state.fitting ? "fitting …" : "";
  $("#status").classList.toggle("busy", state.fitting);
  if (state.fault) notice(state.fault);
  $("#place").textContent = card ? `${plural(state.labelled, "answer")}${state.skipped ? `, ${state.skipped} skipped` : ""} · ${plural(state.queue.length, "node")} in the queue` : plural(state.labelled, "answer");
  $("#node").textContent = card ? card.node : state.fitting ? "A moment …" : "No node to label";
  $("#reason").textContent = card ? card.reason : state.fitting ? "A model is being fitted; the nodes to label come next." :
    state.read_only ? "There is no queue in this folder." : "Every suggested node has an answer. Start the command again for more.";
  $("#answers").hidden = !card && !state.last;
  drawClasses(card);
  drawLast();
  $("#row").replaceChildren(...(card && card.cells.length ? [h("div", { class: "scroll" }, h("table", { class: "keys" }, h("tbody", {}, card.cells.map(([name, text]) => h("tr", {}, h("th", { scope: "row" }, ...name.split("_").flatMap((part, i) => (i ? ["_", h("wbr"), part] : [part]))), h("td", {}, h("bdi", {}, text)))))))] : []));
  for (const id of ["around", "thinks"]) document.getElementById(id).hidden = !card;
  if (card) { drawRing(card); drawThinks(card); }
  drawGrowth();
  drawQueue();
}

function drawClasses(card) {
  const best = card && card.probs.length ? card.probs[0][0] : null;
  const share = new Map(card ? card.probs : []);
  $("#classes").replaceChildren(...(card ? state.classes.map((name, i) => h("button", { type: "button", class: name === best ? "likely" : null, disabled: state.read_only, title: name, onclick: () => answer(name) },
    i < 9 ? h("kbd", {}, i + 1) : null, dot(i), h("span", {}, h("bdi", {}, name)), share.has(name) ? h("small", {}, percent(share.get(name), 0)) : null)) : []));
  $("#known").replaceChildren(...state.classes.map((name) => h("option", { value: name })));
  for (const id of ["other", "skip"]) document.getElementById(id).disabled = !card || state.read_only;
  $("#undo").disabled = !state.last || state.read_only;
}

function drawLast() {
  const last = state.last;
  $("#last").replaceChildren(...(!last ? [] : last[1] === "skip" ? [isolate(last[0]), " was skipped."] : [isolate(last[0]), " is ", dot(index(last[2])), " ", h("bdi", {}, last[2]), "."]));
}

// Neighbours stand around the node; a filled circle has a label, an open one a prediction.
let redrawRing = null, ringCard = null;
function drawRing(card) {
  ringCard = card;
  const some = card.degree > card.neighbours.length ? `${card.neighbours.length} of ${plural(card.degree, "neighbour")}` : plural(card.degree, "neighbour");
  $("#key").textContent = card.degree ? `${some}. Filled: it has a label. Open: the model predicts it.` : "No edge leads to it: its own features decide.";
  if (redrawRing) redrawRing(); else redrawRing = chart($("#ring"), ring);
}
function ring(width) {
  const card = ringCard, near = [...card.neighbours].sort((a, b) => index(a[1]) - index(b[1]));
  const height = Math.min(300, Math.max(190, width * 0.62)), cx = width / 2, cy = height / 2;
  const spot = (i) => { const angle = -Math.PI / 2 + 2 * Math.PI * (i + 0.5) / near.length; return [cx + Math.min(width / 2 - 92, height * 0.62) * Math.cos(angle), cy + (height / 2 - 26) * Math.sin(angle)]; };
  const lines = near.map((_, i) => { const [x, y] = spot(i); return s("line", { x1: cx, y1: cy, x2: x, y2: y, stroke: "var(--mute)", "stroke-width": 1.4 }); });
  const bodies = near.map(([name, label, origin], i) => {
    const [x, y] = spot(i), given = origin === "given" || origin === "held", side = Math.abs(x - cx) < 12 ? "middle" : x > cx ? "start" : "end";
    return s("g", tipped(name, [`${label}${given ? "" : ", predicted"}`]),
      s("circle", { cx: x, cy: y, r: 7, fill: given ? shadeOf(label) : "var(--card)", stroke: shadeOf(label), "stroke-width": 2.2 }),
      s("text", { x: side === "middle" ? x : side === "start" ? x + 11 : x - 11, y: side === "middle" ? (y < cy ? y - 12 : y + 20) : y + 4, "text-anchor": side }, clip(name, 11)));
  });
  const words = `${card.node} and ${plural(near.length, "neighbour")}: ${near.map(([name, label, origin]) => `${name} ${label}${origin === "given" || origin === "held" ? "" : " (predicted)"}`).join(", ")}`;
  return canvas(width, height, words, ...lines, ...bodies, s("circle", { cx, cy, r: 11, fill: "var(--card)", stroke: "var(--ink)", "stroke-width": 2.4 }), s("text", { x: cx, y: cy + 4.5, "text-anchor": "middle", class: "strong" }, "?"));
}

function drawThinks(card) {
  $("#probs").replaceChildren(bars(card.probs.slice(0, 6).map(([name, share]) => [name, share, shadeOf(name)])));
  $("#because").hidden = !card.influences.length;
  $("#influences").replaceChildren(...(card.influences.length ? [bars(card.influences.map(([name, label, share]) => [`${isolate(name)} · ${isolate(label)}`, share, shadeOf(label)]))] : []));
}

let redrawGrowth = null;
function drawGrowth() {
  const known = state.progress.filter((row) => row.accuracy !== null), last = known[known.length - 1];
  $("#growth-words").textContent = last ? `${percent(last.accuracy)} on ${plural(last.judged, "held-out label")} (95 % interval ${percent(last.low, 0)} to ${percent(last.high, 0)}). ${state.waiting ? `${plural(state.waiting, "answer")} since the last fit; the next fit comes at ${state.batch}.` : ""}${known.length > 1 ? " Suggested nodes are harder than most, so the accuracy over all nodes tends to be higher." : ""}` :
    state.progress.length ? "Not known yet: no class has two labels." : "Not known yet: the first fit is not done.";
  $("#curve").hidden = !known.length;
  if (redrawGrowth) redrawGrowth(); else redrawGrowth = chart($("#curve"), growth);
}
function growth(width) {
  const rows = state.progress.filter((row) => row.accuracy !== null), height = 190;
  if (!rows.length) return canvas(width, 0, "");
  const low = Math.max(0, Math.min(...rows.map((row) => row.low)) - 0.03), high = Math.min(1, Math.max(...rows.map((row) => row.high)) + 0.02);
  const first = rows[0].labels, end = Math.max(rows[rows.length - 1].labels, first + 1);
  const x = linear([first, end], [46, width - 16]), y = linear([low, high], [height - 30, 10]);
  const parts = ticks(low, high, 4).flatMap((t) => [s("line", { x1: 46, x2: width - 12, y1: y(t), y2: y(t), class: "grid" }), s("text", { x: 40, y: y(t) + 4, "text-anchor": "end" }, percent(t, 0))]);
  parts.push(s("path", { d: `${rows.map((row, i) => `${i ? "L" : "M"}${x(row.labels)} ${y(row.high)}`).join("")}${[...rows].reverse().map((row) => `L${x(row.labels)} ${y(row.low)}`).join("")}Z`, fill: "var(--accent)", opacity: 0.13 }),
    s("path", { d: rows.map((row, i) => `${i ? "L" : "M"}${x(row.labels)} ${y(row.accuracy)}`).join(""), fill: "none", stroke: "var(--accent)", "stroke-width": 2.2 }));
  for (const row of rows) parts.push(s("circle", { class: "fit", cx: x(row.labels), cy: y(row.accuracy), r: 4, fill: "var(--accent)", ...tipped(plural(row.labels, "label"), [`${percent(row.accuracy)}, 95 % interval ${percent(row.low, 0)} to ${percent(row.high, 0)}`]) }));
  for (const t of [...new Set([first, rows[rows.length - 1].labels])]) parts.push(s("text", { x: x(t), y: height - 10, "text-anchor": t === first ? "start" : "end" }, plural(t, "label")));
  return canvas(width, height, `Accuracy on held-out labels: ${rows.map((row) => `${plural(row.labels, "label")} ${percent(row.accuracy)}`).join(", ")}`, ...parts);
}

function drawQueue() {
  const rest = state.queue.slice(1);
  $("#queue-words").textContent = [state.strategy && `Chosen by the strategy “${state.strategy}”.`, ...state.notes.map((note) => `${capital(note)}.`)].filter(Boolean).join(" ");
  $("#queue").replaceChildren(...rest.slice(0, 20).map((name) => h("li", {}, h("bdi", {}, name))));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const field = $("#other");
  if (event.target === field) {
    if (event.key === "Enter") { const name = field.value.trim(); if (name) { field.value = ""; field.blur(); answer(name); } event.preventDefault(); }
    else if (event.key === "Escape") { field.value = ""; field.blur(); }
    return;
  }
  const digit = "123456789".indexOf(event.key), letter = event.key.toLowerCase();
  if (event.key.length === 1 && digit >= 0) { if (state && digit < state.classes.length) answer(state.classes[digit]); }
  else if (letter === "s") skip();
  else if (letter === "u") undo();
  else if (letter === "n") { field.focus(); event.preventDefault(); }
});
$("#skip").addEventListener("click", skip);
$("#undo").addEventListener("click", undo);

async function look() {
  if (!busy && !document.hidden) {
    try { const found = await talk("state"); if (!busy) { if (!state) notice(""); take(found.state); } } catch (error) { if (state) notice("The server does not answer. Every answer that was shown here is on the disk; start `bangs label` again."); }
  }
  setTimeout(look, state && state.fitting ? 700 : 2000);
}
look();
