const nodeButton = (node, most = 60) => h("button", { type: "button", class: "link", title: nodes.name[node], onclick: () => { choose(node); document.getElementById("map").scrollIntoView(); } }, clip(nodes.name[node], most));
const classTag = (c) => h("span", { class: "tag", title: className(c) }, dot(c), clip(className(c), 28));

function drawPredictions() {
  if (!nodes) return;
  const count = nodes.name.length, held = count < facts.total;
  const section = show("predictions", `The prediction for ${held ? `${whole(count)} of ${whole(facts.total)} nodes, labelled and held ones first; predictions.csv has all` : `each of the ${plural(count, "node")}`}. The least certain come first.${nodes.soft ? " A soft label is the probabilities that an earlier round predicted for a node without a label. Its weight says how much it counted in training; the mean weight of a given label is 1." : ""}`);
  const label = (i) => nodes.known[i] >= 0 ? nodes.known[i] : nodes.truth ? nodes.truth[i] : -1;
  const right = (i) => (label(i) < 0 ? "" : label(i) === nodes.label[i] ? "yes" : "no");
  const someLabel = nodes.name.some((_, i) => label(i) >= 0);
  const columns = [
    { name: "Node", key: (i) => nodes.name[i], cell: (i) => nodeButton(i) },
    { name: "Prediction", key: (i) => className(nodes.label[i]), cell: (i) => classTag(nodes.label[i]) },
    { name: "Confidence", key: (i) => nodes.confidence[i], cell: (i) => percent(nodes.confidence[i]), csv: (i) => nodes.confidence[i], kind: "r" },
    { name: "Second choice", key: (i) => className(nodes.second[i]), cell: (i) => [classTag(nodes.second[i]), h("span", { class: "se" }, ` ${percent(nodes.second_confidence[i])}`)] },
    { name: "Source", key: (i) => ORIGINS[nodes.origin[i]], cell: (i) => origin(i) },
    nodes.soft && { name: facts.model ? "Soft label (model with most weight)" : "Soft label", key: (i) => (nodes.weight[i] > 0 && nodes.origin[i] === 4 ? nodes.soft[i][2] : -1), cell: (i) => (nodes.origin[i] === 4 ? softWords(i) : "–"), csv: (i) => (nodes.origin[i] === 4 ? softWords(i) : "") },
    nodes.soft && { name: "Weight", key: (i) => nodes.weight[i], cell: (i) => (nodes.weight[i] > 0 ? nodes.weight[i].toPrecision(2) : "–"), kind: "r" },
    someLabel && { name: "Known label", key: (i) => (label(i) >= 0 ? className(label(i)) : ""), cell: (i) => (label(i) >= 0 ? classTag(label(i)) : "–") },
    someLabel && { name: "Right", key: right, cell: (i) => (right(i) ? h("span", { class: right(i) }, right(i)) : "–") },
  ].filter(Boolean);
  watchers.push(dataTable({
    section, table: $("#predicted"), tools: $("#prediction-filters"), foot: $("#prediction-pages"), count, columns, size: 20, noun: "node",
    file: "predictions-shown.csv", sort: { by: 2, down: false }, marked: (i) => i === current,
    text: (i) => `${nodes.name[i]}\n${className(nodes.label[i])}`, search: { id: "search-predictions", words: "Search nodes and predictions" },
    filters: [
      { key: "label", name: "All predictions", of: (i) => String(nodes.label[i]), choices: facts.classes.map((name, c) => [String(c), name]) },
      { key: "origin", name: "All sources", of: (i) => String(nodes.origin[i]), choices: ORIGINS.map((words, o) => [String(o), words]).filter(([o]) => nodes.origin.includes(+o)) },
      { key: "right", name: "Right and wrong", of: (i) => right(i) || "none", choices: someLabel ? [["yes", "right"], ["no", "wrong"], ["none", "no label in the data"]] : [] }],
  }));
}

function drawPseudoLabels() {
  const p = facts.pseudo;
  if (!p || !p.node.length) return;
  const more = p.node.length < p.total ? ` The first ${whole(p.node.length)} of ${whole(p.total)}; all are in pseudo_labels.csv.` : "";
  const section = show("pseudo", `The nodes that the model labelled itself, with the labelled nodes that influenced each most.${more}`);
  const value = capital(facts.score) + (POWER ? `, ${POWER.slice(1)}` : "");
  const reasons = (i) => ((facts.around[p.node[i]] || { influences: [] }).influences.slice(0, 3));  // those shown, so that a search finds what is seen
  const influences = (i) => reasons(i).map(([other, share]) => `${isolate(clip(nodes.name[other], 24))} (${percent(share, 0)})`).join(" · ") || (facts.around[p.node[i]] ? "none within reach: its own features decide" : "not in this page");
  const columns = [
    { name: "Node", key: (i) => nodes.name[p.node[i]], cell: (i) => nodeButton(p.node[i]) },
    { name: "Round", key: (i) => p.round[i], kind: "r" },
    { name: "Label", key: (i) => className(p.label[i]), cell: (i) => classTag(p.label[i]) },
    { name: "Confidence", key: (i) => p.confidence[i], cell: (i) => [percent(p.confidence[i]), h("span", { class: "se" }, ` was ${(100 * p.before[i]).toFixed(1)}`)], kind: "r" },
    { name: value, key: (i) => p.value[i], cell: (i) => [inUnit(p.value[i]), p.stderr[i] === null ? null : h("span", { class: "se" }, withError(p.value[i], p.stderr[i]).slice(inUnit(p.value[i]).length))], csv: (i) => inUnit(p.value[i]), kind: "r" },
    p.right && p.right.some((x) => x !== null) ? { name: "Right", key: (i) => (p.right[i] === null ? -1 : Number(p.right[i])), cell: (i) => (p.right[i] === null ? "–" : h("span", { class: p.right[i] ? "yes" : "no" }, p.right[i] ? "yes" : "no")), csv: (i) => (p.right[i] === null ? "" : p.right[i] ? "yes" : "no") } : null,
    p.used.every(Boolean) ? null : { name: "Used", key: (i) => Number(p.used[i]), cell: (i) => (p.used[i] ? "yes" : "no, came later"), csv: (i) => (p.used[i] ? "yes" : "no") },
    { name: "Strongest labelled influences", key: null, cell: influences, csv: influences, kind: "wide" }].filter(Boolean);
  watchers.push(dataTable({
    section, table: $("#candidates"), tools: $("#filters"), foot: $("#pages"), count: p.node.length, columns, size: 20, noun: "pseudo-label",
    file: "pseudo-labels-shown.csv", sort: null, marked: (i) => p.node[i] === current,
    text: (i) => [nodes.name[p.node[i]], className(p.label[i]), ...reasons(i).map(([other]) => nodes.name[other])].join("\n"), search: { id: "search", words: "Search nodes, labels, influences" },
    filters: [
      { key: "label", name: "All labels", of: (i) => String(p.label[i]), choices: facts.classes.map((name, c) => [String(c), name]).filter(([c]) => p.label.includes(+c)) },
      { key: "round", name: "All rounds", of: (i) => String(p.round[i]), choices: [...new Set(p.round)].map((round) => [String(round), `round ${round}`]) }],
  }));
}

const FIRST = 5;  // suggestions that are shown at first
function drawNext() {
  const found = facts.next;
  if (!found || !found.node.length) return;
  const section = show("next", `The nodes whose labels would help the model most, ordered by ${found.order}. Each is chosen as if those above it were labelled. bangs label opens a page where you label them.${found.notes.map((note) => ` ${capital(note)}.`).join("")}`);
  const head = ["", "Node", "Prediction", "Confidence", "Second choice", "Why"];
  $("#suggested thead").append(h("tr", {}, head.map((name, c) => h("th", { scope: "col", class: c === 3 ? "r" : c === 5 ? "wide" : null }, name))));
  $("#suggested tbody").append(...found.node.map((node, i) => h("tr", { hidden: i >= FIRST }, [
    [`${i + 1}`, "r"], [nodeButton(node), null], [classTag(nodes.label[node]), null], [percent(nodes.confidence[node]), "r"],
    [[classTag(nodes.second[node]), h("span", { class: "se" }, ` ${percent(nodes.second_confidence[node])}`)], null], [found.reason[i], "wide"]]
    .map(([content, kind], c) => h("td", { class: kind, "data-label": head[c] }, content)))));
  if (found.node.length > FIRST) section.append(h("div", { class: "tools foot" }, h("button", { type: "button", onclick: (event) => {
    for (const row of $("#suggested tbody").rows) row.hidden = false;
    event.currentTarget.remove();
  } }, `Show all ${found.node.length}`)));
}

const sections = [drawRounds, drawAdopted, drawMap, drawSearch, drawNode, drawNext, drawPredictions, drawPseudoLabels, drawValues, drawReliability, drawConfusion, drawSeconds];
for (const draw of sections) draw();
if (nodes) choose(facts.pseudo.node.length ? facts.pseudo.node[0] : Number(Object.keys(facts.around)[0]));
