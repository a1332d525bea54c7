// A pair of axes: horizontal lines at the ticks of y, words below and to the left.
function frame(width, height, pad, y, yWords, x, xWords, xLabel) {
  const parts = [];
  for (const [value, words] of yWords) parts.push(
    s("line", { x1: pad.left, x2: width - pad.right, y1: y(value), y2: y(value), class: "grid" }),
    s("text", { x: pad.left - 8, y: y(value) + 4, "text-anchor": "end" }, words));
  for (const [value, words] of xWords) parts.push(s("text", { x: x(value), y: height - pad.bottom + 18, "text-anchor": "middle" }, words));
  parts.push(s("line", { x1: pad.left, x2: width - pad.right, y1: height - pad.bottom, y2: height - pad.bottom, class: "axis" }));
  if (xLabel) parts.push(s("text", { x: (pad.left + width - pad.right) / 2, y: height - 2, "text-anchor": "middle" }, xLabel));
  return parts;
}

// What follows an accuracy: its range and the nodes it was measured on.
function ranged({ low, high, nodes: count, mean }) {
  if (facts.runs > 1) return ` ± ${percent(high - mean, 2)}`;
  return count ? ` (${percent(low)} to ${percent(high)}, on ${plural(count, "node")})` : "";
}

function drawRounds() {
  const section = document.getElementById("rounds");
  if (facts.model) section.querySelector("h2").textContent = `Accuracy by round of ${facts.model.name}`;
  const chose = facts.folds ? " 'Chosen' is the last round that is not clearly worse than the best." : "";
  show("rounds", `Round 0 learns from the given labels alone; every later round learns from ${facts.soft ? "soft labels as well" : "more pseudo-labels"}.${chose}`);
  const rows = facts.rounds;
  const series = [["validation", "var(--c0)", facts.folds ? "held-out" : "validation"], ["test", "var(--c1)", "test"]].filter(([name]) => rows.every((row) => row[name]));
  const chosen = facts.chosen;
  chart(section.querySelector(".chart"), (width) => {
    const height = 290, pad = { left: 46, right: 22, top: 26, bottom: 40 };
    const all = rows.flatMap((row) => series.flatMap(([name]) => [row[name].low, row[name].high]));
    let low = Math.min(...all), high = Math.max(...all);
    const room = Math.max((high - low) * 0.15, (0.06 - (high - low)) / 2);
    low = Math.max(0, low - room); high = Math.min(1, high + room);
    const x = linear([0, Math.max(rows.length - 1, 1)], [pad.left + 8, width - pad.right - 8]);
    const y = linear([low, high], [height - pad.bottom, pad.top]);
    const every = Math.ceil(rows.length / Math.max(2, Math.floor(width / 46)));
    const parts = frame(width, height, pad, y, ticks(low, high, 5).map((v) => [v, `${figure(100 * v)}`]), x,
      rows.filter((row) => row.round % every === 0).map((row) => [row.round, row.round]), "round");
    parts.push(s("text", { x: 4, y: 14 }, "%"));
    if (chosen.length === 1) {
      const at = x(chosen[0]), right = at > width * 0.7;
      parts.push(s("line", { x1: at, x2: at, y1: pad.top - 6, y2: height - pad.bottom, stroke: "var(--ink)", "stroke-dasharray": "3 3", opacity: 0.55 }),
        s("text", { x: at + (right ? -6 : 6), y: pad.top - 8, class: "strong", "text-anchor": right ? "end" : "start" }, "chosen"));
    } else {
      const count = {};
      for (const round of chosen) count[round] = (count[round] || 0) + 1;
      for (const [round, n] of Object.entries(count)) parts.push(s("g", tipped(`Round ${round}`, [`chosen by ${plural(n, "seed")}`]),
        s("path", { d: `M${x(+round)} ${pad.top - 4} l-5 -9 h10 z`, fill: "var(--ink)", opacity: 0.35 + 0.65 * n / chosen.length })));
    }
    for (const [name, paint] of series) {
      const upper = rows.map((row) => `${x(row.round)},${y(row[name].high)}`);
      const lower = rows.map((row) => `${x(row.round)},${y(row[name].low)}`).reverse();
      if (rows.some((row) => row[name].high > row[name].low)) parts.push(s("polygon", { points: [...upper, ...lower].join(" "), fill: paint, opacity: 0.13 }));
      parts.push(s("polyline", { points: rows.map((row) => `${x(row.round)},${y(row[name].mean)}`).join(" "), fill: "none", stroke: paint, "stroke-width": 2.2, "stroke-linejoin": "round" }));
      for (const row of rows) parts.push(s("circle", { cx: x(row.round), cy: y(row[name].mean), r: chosen.length === 1 && row.round === chosen[0] ? 5.5 : 3.2, fill: paint, stroke: "var(--card)", "stroke-width": 1.5 }));
    }
    const half = rows.length > 1 ? (x(1) - x(0)) / 2 : 40;
    const from = (row) => Math.max(pad.left, x(row.round) - half), to = (row) => Math.min(width - pad.right, x(row.round) + half);
    for (const row of rows) parts.push(s("rect", { x: from(row), width: to(row) - from(row), y: pad.top, height: height - pad.top - pad.bottom, fill: "transparent",
      ...tipped(`Round ${row.round}`, [
        ...series.map(([name, , words]) => `${words} ${percent(row[name].mean, 2)}${ranged(row[name])}`),
        `${whole(row.labelled)} labelled nodes`,
        row.right !== null && `${percent(row.right)} of pseudo-labels right`]) }));
    return canvas(width, height, `Accuracy per round: ${series.map(([name, , words]) => `${words} from ${percent(rows[0][name].mean)} in round 0 to ${percent(rows[rows.length - 1][name].mean)} in the last`).join("; ")}`, ...parts);
  });
  section.append(h("div", { class: "key" }, series.map(([, paint, words]) => h("span", {}, h("i", { class: "dot", style: `background:${paint}` }), words === "held-out" ? "accuracy on held-out labels" : `${words} accuracy`)),
    h("span", {}, facts.runs > 1 ? `shaded: one standard deviation over ${facts.runs} seeds · ▼ rounds chosen by validation` : nodes ? `shaded: 95 % interval, on ${series.map(([name, , words]) => `${plural(rows[0][name].nodes, "node")}${words === "held-out" ? "" : ` for ${words}`}`).join(" and ")}` : "")));
  const marked = rows.some((row) => row.right !== null);
  section.querySelector(".data .scroll").append(h("table", {},
    h("thead", {}, h("tr", {}, ["round", ...series.map(([, , words]) => `${words} %`), "labelled", marked && "right %", "seconds"].filter(Boolean).map((name) => h("th", { scope: "col", class: "r" }, name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, [row.round, ...series.map(([name]) => (100 * row[name].mean).toFixed(2)), whole(row.labelled),
      marked && (row.right === null ? "–" : (100 * row.right).toFixed(1)), Object.values(row.seconds).reduce((a, b) => a + b, 0).toFixed(2)].filter((v) => v !== false).map((v) => h("td", { class: "r" }, String(v))))))));
  section.append(section.querySelector(".data"));
}

function drawAdopted() {
  const rows = facts.rounds.filter((row) => row.adopted.some((n) => n > 0));
  if (!rows.length) return;
  const marked = rows.some((row) => row.new_right !== null);
  if (facts.soft) $("#adopted h2").textContent = "Soft labels by class";
  const section = show("adopted", facts.soft ? `How many nodes had a soft label in each round${facts.model ? " of this model" : ""}, by its most likely class.` : `How many nodes each round adopted, and with which label${marked ? "; above the bars, how many of them are right, where the truth is known" : ""}.`);
  const total = (row) => row.adopted.reduce((a, b) => a + b, 0);
  chart(section.querySelector(".chart"), (width) => {
    const height = 290, pad = { left: 46, right: 10, top: 26, bottom: 40 };
    const high = Math.max(...rows.map(total));
    const step = (width - pad.left - pad.right) / rows.length, bar = Math.min(46, step * 0.72);
    const x = (i) => pad.left + step * (i + 0.5);
    const y = linear([0, high], [height - pad.bottom, pad.top]);
    const every = Math.ceil(34 / step);
    const parts = frame(width, height, pad, y, ticks(0, high, 4).filter(Number.isInteger).map((v) => [v, axisCount(v)]), x,
      rows.map((row, i) => [i, row.round]).filter(([i]) => i % every === 0), "round");
    rows.forEach((row, i) => {
      let base = 0;
      row.adopted.forEach((n, c) => {
        if (!n) return;
        parts.push(s("rect", { x: x(i) - bar / 2, width: bar, y: y(base + n), height: Math.max(0, y(base) - y(base + n) - 0.8), fill: colour(c), rx: 1.5,
          ...tipped(`Round ${row.round}: ${clip(className(c), 40)}`, [`${figure(n)} of ${figure(total(row))} adopted nodes`, row.new_right !== null && `${percent(row.new_right)} of ${plural(row.marked, "node")} right`]) }));
        base += n;
      });
      if (row.new_right !== null && i % Math.ceil(40 / step) === 0) parts.push(s("text", { x: x(i), y: y(base) - 6, "text-anchor": "middle" }, `${Math.round(100 * row.new_right)} %`));
    });
    return canvas(width, height, `Adopted nodes per round and class; ${whole(rows.reduce((a, row) => a + total(row), 0))} in all`, ...parts);
  });
  const used = facts.classes.map((_, c) => c).filter((c) => rows.some((row) => row.adopted[c] > 0)).slice(0, 20);
  section.append(h("div", { class: "key" }, used.map((c) => h("span", {}, dot(c), clip(className(c), 24)))));
}

function drawValues() {
  if (!facts.values.length) return;
  const name = facts.score;
  const section = show("values", `${capital(name)} of the ${facts.values.some((v) => v.left.length) ? "candidates of a round. Those right of the cut were adopted." : "nodes a round adopted."}${name === "Banzhaf value" ? " It says how much a node's label adds to what the model would know of the others, on average over the sets of nodes that the round could have adopted." : ""}`);
  const pick = h("select", { id: "round-of-values", onchange: () => redraw() }, facts.values.map((v) => h("option", { value: v.round }, `round ${v.round}`)));
  $("#which").append(h("label", { for: "round-of-values" }, "Round"), pick);
  const redraw = chart(section.querySelector(".chart"), (width) => {
    const found = facts.values.find((v) => String(v.round) === pick.value);
    const height = 250, pad = { left: 46, right: 14, top: 24, bottom: 40 };
    const all = [...found.taken, ...found.left];
    let low = Math.min(...all), high = Math.max(...all);
    if (low === high) { low -= Math.abs(low) * 0.1 || 1; high += Math.abs(high) * 0.1 || 1; }
    const bins = Math.min(40, Math.max(10, Math.floor(width / 16)));
    const binOf = (v) => Math.min(bins - 1, Math.floor((v - low) / (high - low) * bins));
    const counts = Array.from({ length: bins }, () => [0, 0]);
    for (const v of found.taken) counts[binOf(v)][0]++;
    for (const v of found.left) counts[binOf(v)][1]++;
    const most = Math.max(...counts.map(([a, b]) => a + b));
    const x = linear([low, high], [pad.left, width - pad.right]), y = linear([0, most], [height - pad.bottom, pad.top]);
    const parts = frame(width, height, pad, y, ticks(0, most, 4).filter(Number.isInteger).map((v) => [v, axisCount(v)]), x, ticks(low, high, width / 90).map((v) => [v, inUnit(v)]), POWER ? `${name}, ${POWER.slice(1)}` : name);
    counts.forEach(([taken, left], i) => {
      const a = x(low + (high - low) * i / bins), b = x(low + (high - low) * (i + 1) / bins);
      const box = { x: a + 0.6, width: Math.max(1, b - a - 1.2), rx: 1.5 };
      const words = tipped(`${inUnit(low + (high - low) * i / bins)} to ${inUnit(low + (high - low) * (i + 1) / bins)} ${POWER}`, [`${whole(taken)} adopted`, left > 0 && `${whole(left)} left`]);
      if (left) parts.push(s("rect", { ...box, y: y(left), height: y(0) - y(left), fill: "var(--mute)", ...words }));
      if (taken) parts.push(s("rect", { ...box, y: y(left + taken), height: y(left) - y(left + taken), fill: "var(--accent)", ...words }));
    });
    const cut = x(found.cut), right = cut > width * 0.75;
    if (found.left.length) parts.push(s("line", { x1: cut, x2: cut, y1: pad.top - 8, y2: height - pad.bottom, stroke: "var(--warm)", "stroke-width": 1.6 }),
      s("text", { x: cut + (right ? -5 : 5), y: pad.top - 10, style: "fill:var(--warm)", "text-anchor": right ? "end" : "start" }, `cut ${inUnit(found.cut)}`));
    return canvas(width, height, `Histogram of ${name} in round ${found.round}: ${found.taken.length} adopted, ${found.left.length} left`, ...parts);
  });
  section.append(h("div", { class: "key" }, h("span", {}, h("i", { class: "dot", style: "background:var(--accent)" }), "adopted"),
    facts.values.some((v) => v.left.length) ? h("span", {}, h("i", { class: "dot", style: "background:var(--mute)" }), "candidates left") : null));
}

function drawReliability() {
  const found = facts.reliability;
  if (!found) return;
  const section = show("reliability", `On ${found.of}. On the diagonal, confidence equals accuracy; below it, the model is too sure. Lines are 95 % intervals.`);
  const kinds = [["before", "var(--mute)", "var(--faint)"], ["after", "var(--accent)", "var(--accent)"]];
  chart(section.querySelector(".chart"), (width) => {
    const size = Math.min(width, 360), height = size - 20, pad = { left: 46, right: 12, top: 10, bottom: 42 };
    const x = linear([0, 1], [pad.left, size - pad.right]), y = linear([0, 1], [height - pad.bottom, pad.top]);
    const marks = [0, 0.25, 0.5, 0.75, 1].map((v) => [v, 100 * v]);
    const parts = frame(size, height, pad, y, marks, x, marks, "confidence %");
    parts.push(s("line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), stroke: "var(--faint)", "stroke-dasharray": "4 4" }),
      s("text", { x: 13, y: (pad.top + height - pad.bottom) / 2, transform: `rotate(-90 13 ${(pad.top + height - pad.bottom) / 2})`, "text-anchor": "middle" }, "right %"));
    const most = Math.max(...kinds.flatMap(([kind]) => found[kind].bins.map((bin) => bin.count)));
    for (const [kind, fill, stroke] of kinds) {
      parts.push(s("polyline", { points: found[kind].bins.map((bin) => `${x(bin.confidence)},${y(bin.accuracy)}`).join(" "), fill: "none", stroke, "stroke-width": 1.3, opacity: 0.7 }));
      if (kind === "after") for (const bin of found[kind].bins) parts.push(s("line", { x1: x(bin.confidence), x2: x(bin.confidence), y1: y(bin.interval[0]), y2: y(bin.interval[1]), stroke, opacity: 0.6, class: "interval" }));
      for (const bin of found[kind].bins) parts.push(s("circle", { cx: x(bin.confidence), cy: y(bin.accuracy), r: 3 + 8 * Math.sqrt(bin.count / most), fill, stroke, "fill-opacity": 0.55,
        ...tipped(`${kind} calibration`, [`confidence ${percent(bin.confidence)}`, `right ${percent(bin.accuracy)} (${percent(bin.interval[0])} to ${percent(bin.interval[1])})`, plural(bin.count, "node")]) }));
    }
    const drawing = canvas(size, height, `Reliability: calibration error ${found.before.error.toFixed(3)} before, ${found.after.error.toFixed(3)} after calibration`, ...parts);
    drawing.style.maxWidth = `${size}px`;
    drawing.style.margin = "0 auto";
    return drawing;
  });
  section.append(h("div", { class: "key" }, kinds.map(([kind, fill]) => h("span", {}, h("i", { class: "dot", style: `background:${fill}` }), `${kind} calibration, error ${found[kind].error.toFixed(3)}`)), h("span", {}, "larger circle: more nodes")));
}

function drawConfusion() {
  const found = facts.confusion;
  if (!found) return;
  const section = show("confusion", `On ${found.of}. Rows are the true class, columns the predicted one.`);
  const rowSum = found.counts.map((row) => row.reduce((a, b) => a + b, 0));
  section.querySelector(".scroll").append(h("table", { class: "matrix" },
    h("thead", {}, h("tr", {}, h("td", {}), facts.classes.map((name) => h("th", { scope: "col", title: name }, name)))),
    h("tbody", {}, found.counts.map((row, i) => h("tr", {}, h("th", { scope: "row", title: className(i) }, className(i)), row.map((n, j) => {
      const share = rowSum[i] ? n / rowSum[i] : 0;
      const paint = i === j ? "var(--accent)" : "var(--bad)";
      return h("td", { style: `background:color-mix(in srgb, ${paint} ${Math.round(n ? 8 + 62 * share : 0)}%, var(--hair))`,
        ...tipped(`${clip(className(i), 30)} → ${clip(className(j), 30)}`, [`${plural(n, "node")}, ${percent(share)} of its class`]) }, n ? whole(n) : "");
    }))))));
}

function drawSeconds() {
  const stages = ["train", "calibrate", "select"].filter((name) => name in facts.seconds).map((name) => [name, facts.seconds[name]]);
  const total = facts.seconds.total;
  if (!total || facts.model) return;  // the table of several models has the time of each
  const rest = total - stages.reduce((a, [, value]) => a + value, 0);
  const names = { train: "training", calibrate: "predicting and calibrating", select: "scoring and choosing" };
  const paints = { train: "var(--c0)", calibrate: "var(--c5)", select: "var(--c1)" };
  const rows = [...stages.map(([name, value]) => [names[name], value, paints[name]]), ["everything else", Math.max(0, rest), "var(--mute)"]];
  const section = show("seconds", `${figure(total)} seconds in all.`);
  section.querySelector(".chart").append(h("div", { class: "bars" }, rows.flatMap(([name, value, paint]) => [h("span", { class: "name", style: "max-width:26ch" }, name),
    h("span", { class: "track" }, h("i", { style: `width:${Math.min(100, 100 * value / total).toFixed(1)}%;background:${paint}` })),
    h("span", { class: "num" }, `${figure(value)} s`)])));
  const holder = h("div", { class: "chart" });
  section.append(h("h3", {}, "Seconds by round"), holder);
  chart(holder, (width) => {
    const height = 150, pad = { left: 46, right: 10, top: 8, bottom: 38 }, all = facts.rounds;
    const sum = (row) => Object.values(row.seconds).reduce((a, b) => a + b, 0);
    const high = Math.max(...all.map(sum), 1e-9), step = (width - pad.left - pad.right) / all.length;
    const x = (i) => pad.left + step * (i + 0.5), y = linear([0, high], [height - pad.bottom, pad.top]);
    const parts = frame(width, height, pad, y, ticks(0, high, 3).map((v) => [v, figure(v)]), x, all.map((row, i) => [i, row.round]).filter(([i]) => i % Math.ceil(34 / step) === 0), "round");
    all.forEach((row, i) => {
      let base = 0;
      for (const [name] of stages) {
        const value = row.seconds[name] || 0;
        parts.push(s("rect", { x: x(i) - Math.min(46, step * 0.72) / 2, width: Math.min(46, step * 0.72), y: y(base + value), height: Math.max(0, y(base) - y(base + value)), fill: paints[name], ...tipped(`Round ${row.round}`, [`${names[name]} ${figure(value)} s`, `${figure(sum(row))} s in all`]) }));
        base += value;
      }
    });
    return canvas(width, height, `Seconds per round, at most ${figure(high)}`, ...parts);
  });
}
