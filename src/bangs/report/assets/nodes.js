const nodes = facts.nodes;
const ORIGINS = ["given", "held for validation", "adopted", "predicted", "soft label"];
const hidden = { label: new Set(), origin: new Set() };  // what the legend has switched off
const onMap = new Set(facts.drawn || []);
let current = null;
const watchers = [];  // called when another node is chosen

function choose(node) {
  current = node;
  onMap.add(node);
  for (const update of watchers) update(node);
}
// A node has the colour of its label in the data, else of its prediction.
const shade = (node) => (nodes.known[node] >= 0 ? nodes.known[node] : nodes.label[node]);
const softWords = (node) => { const [first, second, share, less] = nodes.soft[node]; return `${clip(className(first), 28)} ${percent(share)}${first === second ? "" : `, ${clip(className(second), 28)} ${percent(less)}`}`; };

// Shape says where a label comes from, colour says which one it is.
function glyph(x, y, origin, paint, size, more) {
  const common = { fill: paint, stroke: "var(--card)", "stroke-width": 1, ...more };
  if (origin === 0) return s("rect", { x: x - size, y: y - size, width: 2 * size, height: 2 * size, ...common, stroke: "var(--ink)", "stroke-width": 1.4 });
  if (origin === 1) return s("path", { d: `M${x} ${y - size * 1.25} L${x + size * 1.2} ${y + size * 0.85} L${x - size * 1.2} ${y + size * 0.85} Z`, ...common, stroke: "var(--ink)", "stroke-width": 1.2 });
  if (origin === 2) return s("circle", { cx: x, cy: y, r: size, ...common });
  return s("circle", { cx: x, cy: y, r: size * 0.8, ...common, fill: "var(--card)", stroke: paint, "stroke-width": 1.4, "fill-opacity": 0.6 });
}
const sizes = [4.6, 4.6, 4.2, 3.6, 3.6];
const origin = (node) => (nodes.origin[node] === 2 ? `adopted in round ${nodes.adopted_round[node]}` : ORIGINS[nodes.origin[node]]);
function describe(node) {
  const known = nodes.known[node];
  return [`${className(nodes.label[node])}, probability ${percent(nodes.confidence[node])}`, origin(node), known >= 0 && known !== nodes.label[node] && `known as ${className(known)}`,
    nodes.truth && nodes.truth[node] >= 0 && nodes.truth[node] !== nodes.label[node] && `its true class is ${className(nodes.truth[node])}`];
}

const LAYER = [4, 3, 2, 0, 1];  // given ones lie on top
function drawMap() {
  if (!nodes) return;
  const some = onMap.size < facts.total ? `${whole(onMap.size)} of ${whole(facts.total)} nodes are drawn: all given and held ones, and some others. A node that you search for is drawn too. ` : "";
  show("map", `Nodes with similar predictions lie together (t\u2011SNE of the log-probabilities; distances between groups mean little). ${some}Choose a node to see its reasons.`);
  const holder = $("#scatter");
  let spots = [];
  const redraw = chart(holder, (width) => {
    const height = Math.max(320, Math.min(680, width * 1.02)), pad = 14;
    const x = linear([0, 1], [pad, width - pad]), y = linear([0, 1], [height - pad, pad]);
    const shown = [...onMap].filter((node) => node === current || (!hidden.label.has(shade(node)) && !hidden.origin.has(nodes.origin[node])));
    shown.sort((a, b) => LAYER[nodes.origin[a]] - LAYER[nodes.origin[b]]);
    spots = shown.map((node) => [x(nodes.x[node] / 1000), y(nodes.y[node] / 1000), node]);
    const parts = [s("rect", { x: 0, y: 0, width, height, fill: "var(--ground)", rx: 10 }),
      ...spots.map(([px, py, node]) => glyph(px, py, nodes.origin[node], colour(shade(node)), sizes[nodes.origin[node]], { opacity: nodes.origin[node] > 2 ? 0.85 : 1 }))];
    const ring = spots.find(([, , node]) => node === current);
    if (ring) parts.push(s("circle", { cx: ring[0], cy: ring[1], r: 10, fill: "none", stroke: "var(--ink)", "stroke-width": 2, "pointer-events": "none" }));
    const drawing = canvas(width, height, `Map of ${shown.length} nodes in ${facts.classes.length} classes; use the search field to choose one`, ...parts);
    const near = (event) => {
      const box = drawing.getBoundingClientRect(), px = (event.clientX - box.left) * width / box.width, py = (event.clientY - box.top) * height / box.height;
      let best = null, least = 22 * 22;
      for (const spot of spots) { const d = (spot[0] - px) ** 2 + (spot[1] - py) ** 2; if (d < least) { least = d; best = spot; } }
      return best && best[2];
    };
    drawing.addEventListener("pointermove", (event) => {
      const node = near(event);
      drawing.style.cursor = node === null ? "default" : "pointer";
      if (node === null) hideTip(); else showTip(event, nodes.name[node], describe(node));
    });
    drawing.addEventListener("pointerleave", hideTip);
    drawing.addEventListener("click", (event) => { const node = near(event); if (node !== null) choose(node); });
    return drawing;
  });
  watchers.push(redraw);
  const chip = (kind, value, mark, words, count) => h("button", { type: "button", class: "chip", "aria-pressed": "true", title: words, onclick: (event) => {
    const off = hidden[kind];
    if (off.has(value)) off.delete(value); else off.add(value);
    event.currentTarget.setAttribute("aria-pressed", String(!off.has(value)));
    redraw();
  } }, mark, h("span", {}, words), h("small", {}, whole(count)));
  const drawn = [...onMap];
  const counted = (of, value) => drawn.filter((node) => of(node) === value).length;
  const originOf = (node) => nodes.origin[node];
  $("#legend").append(
    ...ORIGINS.map((words, o) => counted(originOf, o) ? chip("origin", o, s("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, glyph(7, 7, o, "var(--faint)", 4.4)), words, counted(originOf, o)) : null).filter(Boolean),
    h("i", { class: "gap" }),
    ...facts.classes.slice(0, 24).map((name, c) => chip("label", c, dot(c), name, counted(shade, c))));
}

function drawSearch() {
  if (!nodes) return;
  const field = $("#find"), list = $("#found");
  let lower = null;
  let hits = [], at = -1;
  const close = () => { list.hidden = true; field.setAttribute("aria-expanded", "false"); field.removeAttribute("aria-activedescendant"); at = -1; };
  const mark = () => { [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === at))); if (at >= 0) field.setAttribute("aria-activedescendant", `hit${at}`); };
  const take = (node) => { field.value = nodes.name[node]; close(); choose(node); };
  const update = () => {
    const words = field.value.trim().toLowerCase();
    lower = lower || nodes.name.map((name) => name.toLowerCase());
    const ranks = [[], [], []];  // the same, begins with it, holds it
    for (let node = 0; node < lower.length && ranks[0].length < 8; node++) {
      const found = lower[node] === words ? 0 : lower[node].startsWith(words) ? 1 : lower[node].includes(words) ? 2 : 3;
      if (found < 3 && ranks[found].length < 8) ranks[found].push(node);
    }
    hits = ranks.flat().slice(0, 8);
    const missing = `No node has this in its name.${nodes.name.length < facts.total ? ` This page holds ${whole(nodes.name.length)} of ${whole(facts.total)} nodes; predictions.csv has all.` : ""}`;
    if (!hits.length) list.replaceChildren(h("li", { role: "option", "aria-disabled": "true", "aria-selected": "false", class: "none" }, missing));
    else list.replaceChildren(...hits.map((node, i) => h("li", { role: "option", id: `hit${i}`, "aria-selected": "false", onpointerdown: (event) => { event.preventDefault(); take(node); } }, dot(shade(node)), nodes.name[node])));
    list.hidden = false;
    field.setAttribute("aria-expanded", String(!list.hidden));
    at = -1;
  };
  field.addEventListener("input", update);
  field.addEventListener("focus", () => { field.select(); update(); });
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { at = (at + (event.key === "ArrowDown" ? 1 : hits.length - 1)) % Math.max(hits.length, 1); mark(); event.preventDefault(); }
    else if (event.key === "Enter" && hits.length) take(hits[Math.max(at, 0)]);
    else if (event.key === "Escape") close();
  });
  watchers.push((node) => { field.value = nodes.name[node]; });
}

// A node's surroundings: neighbours on a ring, labelled influences as arcs as wide as they are strong.
function ego(node, width) {
  const found = facts.around[node];
  const height = Math.min(340, width * 0.9), cx = width / 2, cy = height / 2;
  const strength = new Map(found.influences.map(([other, share]) => [other, share]));
  const near = found.neighbours.map(([other]) => other).sort((a, b) => shade(a) - shade(b) || a - b);
  const far = found.influences.map(([other]) => other).filter((other) => !near.includes(other));
  const spot = new Map();
  const inner = Math.min(width, height) * (far.length ? 0.29 : 0.36), outer = Math.min(width, height) * 0.41;
  const wide = [Math.min(1.25 * inner, width / 2 - 74), Math.min(1.4 * outer, width / 2 - 70)];  // names stand beside them
  near.forEach((other, i) => { const angle = -Math.PI / 2 + 2 * Math.PI * i / Math.max(near.length, 1); spot.set(other, [cx + wide[0] * Math.cos(angle), cy + inner * Math.sin(angle)]); });
  far.forEach((other, i) => {
    // between two neighbours, so that their names do not meet
    const slots = Math.max(near.length, 1), angle = -Math.PI / 2 + 2 * Math.PI * (Math.floor(i * slots / far.length) + (near.length ? 0.5 : 0) + (near.length < far.length ? i / far.length : 0)) / slots;
    spot.set(other, [cx + wide[1] * Math.cos(angle), cy + outer * Math.sin(angle)]); });
  const parts = [];
  for (const a of near) for (const [b] of (facts.around[a] || { neighbours: [] }).neighbours) if (b > a && near.includes(b)) parts.push(s("line", { x1: spot.get(a)[0], y1: spot.get(a)[1], x2: spot.get(b)[0], y2: spot.get(b)[1], stroke: "var(--line)" }));
  for (const other of near) parts.push(s("line", { x1: cx, y1: cy, x2: spot.get(other)[0], y2: spot.get(other)[1], stroke: "var(--mute)", "stroke-width": 1.4 }));
  for (const [other, share, label] of found.influences) {
    const [x, y] = spot.get(other), bend = 0.22;
    const mx = (x + cx) / 2 - (y - cy) * bend, my = (y + cy) / 2 + (x - cx) * bend;
    parts.push(s("path", { d: `M${x} ${y} Q${mx} ${my} ${cx} ${cy}`, fill: "none", stroke: colour(label), "stroke-width": 1.5 + 12 * share, "stroke-linecap": "round", opacity: 0.55, class: "influence" }));
  }
  // A name is left out where it would cover another name or node; the tooltip has it.
  const taken = [...spot.values()].map(([x, y]) => [x - 7, y - 7, x + 7, y + 7]);
  const free = (box) => box[0] >= 0 && box[2] <= width && box[1] >= 0 && box[3] <= height && taken.every((one) => box[2] <= one[0] || one[2] <= box[0] || box[3] <= one[1] || one[3] <= box[1]);
  const name = (other, x, y, size) => {
    const centre = other === node, side = centre || Math.abs(x - cx) <= 4 ? "middle" : x > cx ? "start" : "end";
    const text = clip(nodes.name[other], centre ? 22 : 11), long = [...text].length * (centre ? 8.2 : 7.6);
    const at = side === "middle" ? x : side === "start" ? x + size + 5 : x - size - 5;
    const line = centre ? y - size - 7 : side === "middle" ? (y > cy ? y + size + 14 : y - size - 6) : y + 4;
    const left = side === "middle" ? at - long / 2 : side === "start" ? at : at - long;
    const box = [left, line - 11, left + long, line + 3];
    if (!centre && !free(box)) return null;
    taken.push(box);
    return s("text", { x: at, y: line, "text-anchor": side, class: centre ? "strong" : null }, text);
  };
  const body = (other, x, y, size) => {
    const open = other !== node;
    const words = labels.get(other);
    return s("g", { class: "ego-node", tabindex: open ? 0 : null, role: open ? "button" : null, "aria-label": open ? `Go to ${nodes.name[other]}` : null, style: open ? "cursor:pointer" : null,
      onclick: open ? () => choose(other) : null, onkeydown: open ? (event) => { if (event.key === "Enter") choose(other); } : null,
      ...tipped(nodes.name[other], [...describe(other), strength.has(other) && `${percent(strength.get(other))} of all labelled nodes' share`]) },
      glyph(x, y, nodes.origin[other], colour(shade(other)), size), words);
  };
  const labels = new Map([[node, name(node, cx, cy, 8.5)]]);
  for (const other of [...far, ...near]) labels.set(other, name(other, ...spot.get(other), 6));
  for (const [other, [x, y]] of spot) parts.push(body(other, x, y, 6));
  parts.push(s("circle", { cx, cy, r: 15, fill: "var(--card)", opacity: 0.9 }), body(node, cx, cy, 8.5));
  return canvas(width, height, `${nodes.name[node]} and its surroundings: ${near.length} neighbours, ${found.influences.length} closest labelled nodes`, ...parts);
}

function drawNode() {
  if (!nodes) return;
  watchers.push((node) => {
    const found = facts.around[node], label = nodes.label[node], why = $("#why");
    const line = facts.pseudo.node.lastIndexOf(node);
    const known = nodes.known[node], predicted = [dot(label), " ", h("bdi", {}, h("b", {}, className(label)))];
    const parts = [h("p", { class: "verdict" }, h("bdi", {}, h("b", {}, nodes.name[node])), ": ", ...(known < 0 ? [...predicted, `, probability ${percent(nodes.confidence[node])}`] :
      ["label ", dot(known), " ", h("bdi", {}, h("b", {}, className(known))), ` was ${nodes.origin[node] === 1 ? "held for validation" : "given"}; the model predicts `, ...predicted, `, ${percent(nodes.confidence[node])}`]))];
    const sentences = nodes.origin[node] === 2 ? [origin(node)] : [];
    if (line >= 0) {
      const p = facts.pseudo;
      sentences.push(`${p.used[line] ? "" : "adopted in round " + p.round[line] + ", after the chosen round; "}${facts.score} ${withError(p.value[line], p.stderr[line])}${POWER && " " + POWER}, confidence then ${percent(p.before[line])} before and ${percent(p.confidence[line])} after calibration`);
    }
    if (nodes.truth && nodes.truth[node] >= 0) sentences.push(nodes.truth[node] === label ? "the prediction is right" : `its true class is ${className(nodes.truth[node])}`);
    if (nodes.second[node] !== label) sentences.push(`second choice ${className(nodes.second[node])}, ${percent(nodes.second_confidence[node])}`);
    if (sentences.length) parts.push(h("p", { class: "how" }, `${capital(sentences.join("; "))}.`));
    if (!found) { parts.push(h("p", { class: "how" }, "This page holds the neighbours and influences of some nodes only. For this one, run ", h("code", {}, `bangs explain FOLDER ${nodes.name[node]}`), ".")); why.replaceChildren(...parts); return; }
    const picture = h("div", { class: "chart", id: "ego" });
    parts.push(picture, h("p", { class: "how" }, `Straight lines are edges: it has ${plural(found.degree, "neighbour")}${found.neighbours.length < found.degree ? `, ${found.neighbours.length} of them drawn` : ""}. ${found.influences.length ? "Curves lead from the closest labelled nodes; a wider curve is a larger share." : ""}`));
    if (found.influences.length) {
      parts.push(h("h3", {}, "Closest labelled nodes in the graph and their shares"),
        h("p", { class: "how" }, "By personalised PageRank on the edges; the models may use other information."),
        bars(found.influences.map(([other, share, as, adopted_round]) => [`${isolate(nodes.name[other])} · ${isolate(className(as))}${adopted_round > 0 ? ` · round ${adopted_round}` : ""}`, share, colour(as), () => choose(other)])));
      const support = found.support.map((share, c) => [share, c]).filter(([share]) => share > 0.005).sort((a, b) => b[0] - a[0]).slice(0, 6);
      parts.push(h("h3", {}, "All labelled nodes, by class"), bars(support.map(([share, c]) => [className(c), share, colour(c), null])),
        h("p", { class: "how" }, `All labelled nodes together have ${percent(found.reach, 0)} of its PageRank.`));
      if (support.length && support[0][1] !== label) parts.push(h("p", { class: "against" }, `By these shares it would be ${isolate(className(support[0][1]))}, but the model predicts ${isolate(className(label))}: it uses other information too.`));
    } else parts.push(h("p", { class: "how" }, "No labelled node is within reach: its own features decide."));
    const one = facts.model, round = nodes.adopted_round[node];
    parts.push(h("h3", {}, "Prediction of each round"));
    const soft = nodes.soft && nodes.origin[node] === 4 ? `its soft label in round ${round} was ${softWords(node)}. The weight of this soft label was ${figure(nodes.weight[node])} times the mean weight of a given label.` : "";
    const words = one ? `One of the ${one.models} models, ${one.name} (${percent(one.weight, 0)} of the weight)${soft ? `: ${soft}` : "."}` : capital(soft);
    parts.push(h("p", { class: "how rounds" }, `${words} The height of a bar is the confidence.`));
    const strip = h("div", { class: "chart" });
    parts.push(strip);
    why.replaceChildren(...parts);
    chart(picture, (width) => ego(node, width));
    chart(strip, (width) => {
      const step = Math.min(34, (width - 50) / found.predicted.length), height = 62, end = step * found.predicted.length;
      return canvas(width, height, `Predictions over rounds: ${found.predicted.map((c, t) => `round ${t} ${className(c)} ${percent(found.sure[t], 0)}`).join(", ")}`,
        s("line", { x1: 0, x2: end + 4, y1: 2, y2: 2, class: "grid" }), s("text", { x: end + 8, y: 9 }, "100\u00a0%"), s("line", { x1: 0, x2: end + 4, y1: 44, y2: 44, class: "axis" }),
        ...found.predicted.flatMap((c, t) => [s("rect", { x: t * step + 1, width: Math.max(1, step - 2), y: 44 - 42 * found.sure[t], height: 42 * found.sure[t], fill: colour(c), rx: 2, ...tipped(`Round ${t}`, [`${className(c)}, confidence ${percent(found.sure[t])}`]) }),
          t % Math.ceil(22 / step) === 0 ? s("text", { x: t * step + step / 2, y: 59, "text-anchor": "middle" }, t) : null].filter(Boolean)));
    });
  });
}
