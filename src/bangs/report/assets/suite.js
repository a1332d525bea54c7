// Every seed of a row: a column of dots per method, its mean a line.
function strip(suite, row, rule, width) {
  const line = suite.lines.find((one) => one.row === row && one.rule === rule);
  const shown = line.entries.map((entry, i) => [entry, suite.columns[i]]).filter(([entry]) => entry && entry.values.length);
  const height = 280, pad = { left: 46, right: 10, top: 12, bottom: 58 };
  const all = shown.flatMap(([entry]) => entry.values);
  const room = Math.max((Math.max(...all) - Math.min(...all)) * 0.1, 0.2), low = Math.min(...all) - room, high = Math.max(...all) + room;
  const step = (width - pad.left - pad.right) / shown.length, x = (i) => pad.left + step * (i + 0.5), y = linear([low, high], [height - pad.bottom, pad.top]);
  const parts = frame(width, height, pad, y, ticks(low, high, 5).map((v) => [v, figure(v)]), x, [], "");
  shown.forEach(([entry, name], i) => {
    const paint = colour(i % 10), wide = Math.min(22, step * 0.3);
    entry.values.forEach((value, n) => parts.push(s("circle", { cx: x(i) + (entry.values.length > 1 ? (n / (entry.values.length - 1) - 0.5) * wide : 0), cy: y(value), r: 3.4, fill: paint, "fill-opacity": 0.6, ...tipped(name, [`seed ${entry.seeds[n]}: ${value.toFixed(2)} %`, `mean ${entry.mean.toFixed(2)}${entry.std === null ? "" : ` ± ${entry.std.toFixed(2)}`}`, entry.run && `run ${entry.run}`]) })));
    parts.push(s("line", { x1: x(i) - wide, x2: x(i) + wide, y1: y(entry.mean), y2: y(entry.mean), stroke: paint, "stroke-width": 2.5 }),
      s("text", step < 74 ? { x: x(i), y: height - pad.bottom + 14, "text-anchor": "end", transform: `rotate(-35 ${x(i)} ${height - pad.bottom + 14})` } : { x: x(i), y: height - pad.bottom + 18, "text-anchor": "middle" }, clip(name, step < 74 ? 12 : Math.floor(step / 7.4))));
  });
  return canvas(width, height, `Test accuracy of every seed on ${row}: ${shown.map(([entry, name]) => `${name} ${entry.mean.toFixed(2)}`).join(", ")}`, ...parts);
}

// The difference between the method in focus and every other, with its 95 % interval.
function forest(tests, width) {
  const height = 34 + 30 * tests.length, left = Math.min(150, width * 0.36), pad = { right: 14 };
  const ends = tests.flatMap((one) => [one.low ?? one.difference, one.high ?? one.difference, 0]);
  const x = linear([Math.min(...ends) - 0.1, Math.max(...ends) + 0.1], [left, width - pad.right]);
  const parts = ticks(Math.min(...ends), Math.max(...ends), width / 110).flatMap((v) => [s("line", { x1: x(v), x2: x(v), y1: 4, y2: height - 26, class: v === 0 ? "axis" : "grid", style: v === 0 ? "stroke:var(--faint)" : null }), s("text", { x: x(v), y: height - 10, "text-anchor": "middle" }, (v > 0 ? "+" : "") + figure(v))]);
  tests.forEach((one, i) => {
    const y = 20 + 30 * i, paint = one.verdict === "better" ? "var(--good)" : one.verdict === "worse" ? "var(--bad)" : "var(--faint)";
    const words = tipped(`${one.first} minus ${one.second}`, [`${one.difference >= 0 ? "+" : ""}${one.difference.toFixed(2)} points over ${plural(one.seeds, "seed")}`, one.low !== null && `95 % interval ${one.low.toFixed(2)} to ${one.high.toFixed(2)}`, `p = ${one.p.toPrecision(2)}, corrected ${one.corrected.toPrecision(2)}: ${one.verdict}`]);
    parts.push(s("g", words, s("rect", { x: 0, y: y - 15, width, height: 30, fill: "transparent" }),
      s("text", { x: left - 10, y: y + 4, "text-anchor": "end" }, clip(`over ${one.second}`, Math.floor(left / 7.2))),
      one.low === null ? null : s("line", { x1: x(one.low), x2: x(one.high), y1: y, y2: y, stroke: paint, "stroke-width": 2.5, "stroke-linecap": "round" }),
      s("circle", { cx: x(one.difference), cy: y, r: 5, fill: paint })));
  });
  return canvas(width, height, `Paired differences: ${tests.map((one) => `${one.difference.toFixed(2)} over ${one.second}, ${one.verdict}`).join("; ")}`, ...parts);
}

// Curves over rounds; a method without rounds is a level.
function rounds(curves, name, width) {
  const height = 280, pad = { left: 46, right: 12, top: 12, bottom: 40 };
  const all = curves.flatMap((one) => one.accuracy), long = Math.max(...curves.map((one) => one.accuracy.length)) - 1;
  const room = Math.max((Math.max(...all) - Math.min(...all)) * 0.08, 0.2), low = Math.min(...all) - room, high = Math.max(...all) + room;
  const x = linear([0, Math.max(long, 1)], [pad.left, width - pad.right]), y = linear([low, high], [height - pad.bottom, pad.top]);
  const parts = frame(width, height, pad, y, ticks(low, high, 5).map((v) => [v, figure(v)]), x, ticks(0, long, Math.min(long, width / 60)).filter(Number.isInteger).map((v) => [v, v]), "round");
  curves.forEach((one, i) => {
    const points = one.accuracy.length > 1 ? one.accuracy.map((v, t) => [t, v]) : [[0, one.accuracy[0]], [long, one.accuracy[0]]];
    parts.push(s("polyline", { points: points.map(([t, v]) => `${x(t)},${y(v)}`).join(" "), fill: "none", stroke: colour(i % 10), "stroke-width": 2, "stroke-dasharray": one.accuracy.length > 1 ? null : "5 4", "stroke-linejoin": "round" }),
      s("polyline", { points: points.map(([t, v]) => `${x(t)},${y(v)}`).join(" "), fill: "none", stroke: "transparent", "stroke-width": 14, ...tipped(name(one), [`first ${one.accuracy[0].toFixed(2)} %`, one.accuracy.length > 1 && `best ${Math.max(...one.accuracy).toFixed(2)} %, last ${one.accuracy[one.accuracy.length - 1].toFixed(2)} % (means over seeds)`]) }));
  });
  return canvas(width, height, `Accuracy of ${curves[0].of} nodes per round: ${curves.map((one) => `${name(one)} ends at ${one.accuracy[one.accuracy.length - 1].toFixed(2)}`).join(", ")}`, ...parts);
}

function levels(suite, rule, width) {
  const lines = suite.lines.filter((one) => one.rule === rule);
  const numeric = suite.columns.map(Number), x0 = numeric.every(Number.isFinite) ? numeric : suite.columns.map((_, i) => i);
  const height = 280, pad = { left: 46, right: 18, top: 12, bottom: 40 };
  const all = lines.flatMap((one) => one.entries.filter(Boolean).flatMap((entry) => [entry.mean - (entry.std || 0), entry.mean + (entry.std || 0)]));
  const low = Math.min(...all), high = Math.max(...all);
  const x = linear([Math.min(...x0), Math.max(...x0)], [pad.left + 8, width - pad.right]), y = linear([low, high], [height - pad.bottom, pad.top]);
  const parts = frame(width, height, pad, y, ticks(low, high, 5).map((v) => [v, figure(v)]), x, x0.map((v, i) => [v, suite.columns[i]]), "");
  lines.forEach((one, i) => {
    const points = one.entries.map((entry, n) => [entry, x0[n], suite.columns[n]]).filter(([entry]) => entry);
    parts.push(s("polygon", { points: [...points.map(([e, v]) => `${x(v)},${y(e.mean + (e.std || 0))}`), ...points.map(([e, v]) => `${x(v)},${y(e.mean - (e.std || 0))}`).reverse()].join(" "), fill: colour(i), opacity: 0.12 }),
      s("polyline", { points: points.map(([e, v]) => `${x(v)},${y(e.mean)}`).join(" "), fill: "none", stroke: colour(i), "stroke-width": 2 }),
      ...points.map(([e, v, words]) => s("circle", { cx: x(v), cy: y(e.mean), r: 4, fill: colour(i), ...tipped(`${one.row}, ${words}`, [`${e.mean.toFixed(2)}${e.std === null ? "" : ` ± ${e.std.toFixed(2)}`} %`, plural(e.seeds.length, "seed")]) })));
  });
  return canvas(width, height, `Test accuracy along the axis: ${lines.map((one) => one.row).join(", ")}`, ...parts);
}

function plot(holder, title, draw, names) {
  const picture = h("div", { class: "chart" });
  holder.append(h("div", {}, h("h3", {}, title), picture, names ? h("div", { class: "key" }, names.map((name, i) => h("span", {}, dot(i % 10), clip(name, 30)))) : null));
  chart(picture, draw);
}

for (const suite of facts.suites) {
  const section = document.getElementById(suite.id), tools = section.querySelector(".tools"), plots = section.querySelector(".plots");
  const rules = [...new Set(suite.lines.map((line) => line.rule))].filter((rule) => rule in facts.protocols);
  if (!rules.length) continue;
  const rows = [...new Set(suite.lines.filter((line) => line.rule === rules[0]).map((line) => line.row))];
  const pick = (words, values, called) => h("select", { "aria-label": words, onchange: () => draw() }, values.map((value) => h("option", { value }, called(value))));
  const rule = pick("Which round counts", rules, (value) => value.replace("_", " ")), row = pick("Row", rows, (value) => value || "all");
  const draw = () => {
    plots.replaceChildren();
    if (suite.kind === "sweep" || suite.kind === "rounds") {
      if (suite.kind === "sweep") plot(plots, `Along ${suite.along}`, (width) => levels(suite, rule.value, width), rows);
      else plot(plots, "Round by round, mean over seeds", (width) => rounds(suite.curves, (one) => one.row, width), suite.curves.map((one) => one.row));
      return;
    }
    plot(plots, `Every seed${row.value ? ` on ${row.value}` : ""}`, (width) => strip(suite, row.value, rule.value, width));
    const tests = (suite.tests[rule.value] || []).filter((one) => one.place === row.value);
    if (tests.length) plot(plots, `${tests[0].first} minus the others, points with 95 % interval`, (width) => forest(tests, width));
    const curves = suite.curves.filter((one) => one.row === row.value);
    if (curves.some((one) => one.accuracy.length > 1)) plot(plots, `Accuracy of ${curves[0].of} nodes round by round, mean over seeds`, (width) => rounds(curves, (one) => one.column, width), curves.map((one) => one.column));
  };
  if (suite.kind !== "rounds") { tools.hidden = false; tools.append(...(suite.kind === "table" && rows.length > 1 ? [row] : []), ...(rules.length > 1 ? [rule] : [])); }
  draw();
}
