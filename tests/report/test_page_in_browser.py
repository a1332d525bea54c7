"""The page in a real browser: it draws itself, reacts to mouse and keyboard, and loads nothing."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bangs.experiments.results import gather
from bangs.experiments.suites.read_suite import read_suite
from bangs.report.page import render
from bangs.report.suite_page import write_suite_page
from tests.helpers.small_graphs import fake_rows, suite_file
from tests.report.browser import CHROMIUM, Browser, browser
from tests.report.sample_runs import SCRIPT, collapsed_run, experiment_run, fit_run, soft_run

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; `make browser` installs Debian's")

TABLE = "[...document.querySelectorAll('#candidates tbody tr')]"
PREDICTIONS = "[...document.querySelectorAll('#predicted tbody tr')]"
FACTS = "JSON.parse(document.querySelector('#facts').textContent)"

# texts of a drawing that lie on each other, and those that leave it or the window
UNREADABLE = """[...document.querySelectorAll('svg[role=img]')].flatMap((drawing) => {
  const texts = [...drawing.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
  const cut = texts.filter(([, box]) => box.left < 0 || box.right > innerWidth).map(([words]) => `cut: ${words}`);
  const meet = (a, b) => a.left + 1 < b.right && b.left + 1 < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom;
  const pairs = texts.flatMap(([one, a], i) => texts.slice(i + 1)
    .filter(([, b]) => meet(a, b)).map(([two]) => [one, two]));
  return [...cut, ...pairs.map(([one, two]) => `${one} on ${two}`)];
})"""
# elements beyond the right edge that nothing scrolls to
BEYOND = """[...document.querySelectorAll('main *')].filter((element) => {
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.right > innerWidth + 1;
}).map((element) => element.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {"fit": fit_run(), "run": experiment_run(), "soft": soft_run(), "collapsed": collapsed_run()}
    made["unmarked"] = fit_run(truth=False)
    line = {"method": "soft", "features": "", "round": 2, "standing": "whole", "seconds": 1.0}
    board = [{**line, "model": "walk", "weight": 0.6}, {**line, "model": "scales", "weight": 0.4}]
    made["averaged"] = replace(made["soft"], result={**made["soft"].result, "folds": True, "leaderboard": board})
    for name, run_data in made.items():
        (folder / f"{name}.html").write_text(render(run_data), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bangs.report.node_data.MAX_DRAWN", 30)
        patch.setattr("bangs.report.node_data.MAX_EXPLAINED", 30)
        (folder / "sampled.html").write_text(render(made["fit"]), encoding="utf-8")
    suite = read_suite(suite_file(folder))
    rows = [row for cell in suite.cells() for row in fake_rows(cell.experiment, [[0.6, 0.7], [0.5, 0.8]])]
    write_suite_page([suite], gather(rows), folder / "suite.html")
    return {name: folder / f"{name}.html" for name in (*made, "suite", "sampled")}


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["fit", "run", "suite", "soft"])
def test_it_opens_without_errors_or_requests_at_any_width(
    tab: Browser, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    tab.open(pages[name], width=width, dark=dark)
    assert tab.errors == []
    assert tab.requests == [pages[name].resolve().as_uri()]
    assert tab.js("document.documentElement.scrollWidth") <= width
    ground = tab.js("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 22, 26)" if dark else "rgb(246, 245, 242)")
    assert tab.js("document.querySelectorAll('svg[role=img][aria-label]').length") >= 2


def test_no_name_ran_as_code(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["fit"])
    assert tab.js("document.images.length") == 0
    assert tab.js("document.scripts.length") == 2
    assert SCRIPT in tab.js("document.querySelector('h1').textContent")


def test_a_name_from_right_to_left_does_not_turn_the_words_beside_it(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["fit"])
    text = tab.js(f"{TABLE}.map(row => row.lastChild.textContent).join('\\n')")
    assert "\u2068\u0645\u0631\u062d\u0628\u0627 7\u2069 (" in text


def test_what_a_value_means_is_said_where_values_are_shown(tab: Browser, pages: dict[str, Path]) -> None:
    for name, words in (("fit", "candidates of a round. Those right of the cut"), ("run", "nodes a round adopted")):
        tab.open(pages[name])
        text = tab.js("document.querySelector('#values .sub').textContent")
        assert f"Banzhaf value of the {words}" in text
        assert "how much a node's label adds to what the model would know of the others" in text


def test_search_narrows_and_sort_orders_the_table(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["fit"])
    everything = tab.js(f"{TABLE}.length")
    name = tab.js(f"{TABLE}[3].querySelector('button').textContent")
    tab.js(
        "{ const field = document.querySelector('#search');"
        f" field.value = {name!r}; field.dispatchEvent(new Event('input')); }}"
    )
    rows = tab.js(f"{TABLE}.map((row) => row.textContent)")
    assert 0 < len(rows) < everything
    assert all(name in text for text in rows)
    tab.open(pages["fit"])
    tab.js(
        "[...document.querySelectorAll('#candidates thead button')].find((b) => b.textContent === 'Confidence').click()"
    )
    column = tab.js(f"{TABLE}.map((row) => parseFloat(row.cells[3].textContent))")
    assert column == sorted(column, reverse=True)
    assert tab.js("document.querySelector('#candidates th[aria-sort]').getAttribute('aria-sort')") == "descending"
    tab.js("document.querySelector('#candidates th[aria-sort] button').click()")
    column = tab.js(f"{TABLE}.map((row) => parseFloat(row.cells[3].textContent))")
    assert column == sorted(column)


def test_a_point_shows_its_tooltip_and_a_click_changes_the_surroundings(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["fit"], height=3000)
    spot = tab.js(
        "{ const all = document.querySelectorAll('#scatter svg rect, #scatter svg circle');"
        " const box = all[all.length - 2].getBoundingClientRect(); [box.x + box.width / 2, box.y + box.height / 2] }"
    )
    tab.mouse("move", *spot)
    shown = tab.js("document.querySelector('#tip').hidden ? '' : document.querySelector('#tip').textContent")
    assert "probability" in shown
    before = tab.js("document.querySelector('#ego').innerHTML")
    tab.mouse("click", *spot)
    after = tab.js("document.querySelector('#ego').innerHTML")
    assert before != after
    chosen = tab.js("document.querySelector('#why b').textContent")
    assert shown.startswith(chosen)


def test_the_surroundings_follow_the_search_field_and_the_keyboard(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["fit"], height=3000)
    tab.js(
        "{ const field = document.querySelector('#find'); field.focus(); field.value = '17';"
        " field.dispatchEvent(new Event('input'));"
        " field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' })); }"
    )
    assert tab.js("document.querySelector('#why b').textContent") == "17"
    assert tab.js("document.querySelectorAll('#ego .influence').length") == 5
    neighbour = tab.js("document.querySelector('#ego .ego-node[tabindex]').getAttribute('aria-label')")
    press = "dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }))"
    tab.js(f"document.querySelector('#ego .ego-node[tabindex]').{press}")
    assert neighbour == "Go to " + tab.js("document.querySelector('#why b').textContent")


def test_legend_and_theme_answer(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["fit"])
    count = "document.querySelectorAll('#scatter svg > *').length"
    before = tab.js(count)
    tab.js("document.querySelector('#legend .chip').click()")
    assert tab.js(count) < before
    assert tab.js("document.querySelector('#legend .chip').getAttribute('aria-pressed')") == "false"
    tab.js("document.querySelector('#theme').click()")
    assert tab.js("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"


def test_a_suites_page_answers_to_another_row_and_rule(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["suite"])
    before = tab.js("document.querySelector('.plots h3').textContent")
    tab.js(
        "{ const pick = document.querySelector('.suite .tools select'); pick.selectedIndex = 1;"
        " pick.dispatchEvent(new Event('change')); }"
    )
    assert before != tab.js("document.querySelector('.plots h3').textContent")
    assert tab.js("document.querySelectorAll('.plots svg').length") == 3


def test_counts_are_marked_by_whole_numbers(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["fit"])
    for chart in ("#values", "#adopted"):
        words = tab.js(f"[...document.querySelectorAll('{chart} svg text[text-anchor=end]')].map((t) => t.textContent)")
        assert words
        assert all(word.isdigit() for word in words), words


def test_counts_of_a_large_graph_fit_beside_their_axis(tab: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    before, start, tail = pages["fit"].read_text().partition('id="facts">')
    body, end, after = tail.partition("</script>")
    facts = json.loads(body)
    for row in facts["rounds"]:
        row["adopted"] = [6000 * count for count in row["adopted"]]
    text = json.dumps(facts).replace("<", "\\u003c")
    (tmp_path / "large.html").write_text("".join([before, start, text, end, after]))
    tab.open(tmp_path / "large.html", width=390)
    words = tab.js("[...document.querySelectorAll('#adopted svg text[text-anchor=end]')].map((t) => t.textContent)")
    assert any(word.endswith("K") for word in words), words
    left_edge = tab.js(
        "Math.min(...[...document.querySelectorAll('#adopted svg text')].map((t) => t.getBoundingClientRect().left"
        " - t.ownerSVGElement.getBoundingClientRect().left))"
    )
    assert left_edge >= 0


def test_it_prints_without_the_controls(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["fit"], dark=True)
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.js("getComputedStyle(document.querySelector('#filters')).display") == "none"
    assert tab.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tab.call("Emulation.setEmulatedMedia", media="")


def search(tab: Browser, words: str) -> None:
    """Type into the search field of the map and press Enter."""
    tab.js(
        f"{{ const field = document.querySelector('#find'); field.focus(); field.value = {words!r};"
        " field.dispatchEvent(new Event('input'));"
        " field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' })); }"
    )


def test_a_search_finds_every_node_and_draws_it(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["sampled"])
    assert tab.js(f"{FACTS}.nodes.name.length") == 60
    undrawn = tab.js(f"{{ const f = {FACTS}; f.nodes.name.filter((_, i) => !f.drawn.includes(i)) }}")
    undrawn.remove(tab.js("document.querySelector('#why b').textContent"))  # chosen, and so drawn, from the start
    assert len(undrawn) > 20
    texts = []
    for name in undrawn:
        before = tab.js("document.querySelectorAll('#scatter svg > *').length")
        search(tab, name)
        assert tab.js("document.querySelector('#why b').textContent") == name
        texts.append(tab.js("document.querySelector('#why').textContent"))
        # the ring is on the new node, which stays on the map
        assert tab.js("document.querySelectorAll('#scatter svg > *').length") == before + 1
    assert any(f"run bangs explain FOLDER {name}" in text for name, text in zip(undrawn, texts, strict=True))
    assert tab.errors == []


def test_a_search_without_a_match_says_so(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["fit"])
    search(tab, "no such node")
    assert tab.js("document.querySelector('#found').hidden") is False
    assert tab.js("document.querySelector('#found').textContent") == "No node has this in its name."


def test_the_table_of_all_predictions_begins_with_the_least_certain(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["fit"])
    assert tab.js("document.querySelector('#prediction-pages .count').textContent") == "60 nodes"
    shown = tab.js(f"{PREDICTIONS}.map((row) => parseFloat(row.cells[2].textContent))")
    every = tab.js(f"{FACTS}.nodes.confidence")
    assert shown == pytest.approx([100 * share for share in sorted(every)[:20]], abs=0.06)
    tab.js(
        "{ const pick = document.querySelector('#prediction-filters select'); pick.value = '2';"
        " pick.dispatchEvent(new Event('change')); }"
    )
    assert set(tab.js(f"{PREDICTIONS}.map((row) => row.cells[1].textContent)")) == {"plain"}
    count = tab.js(f"{FACTS}.nodes.label.filter((c) => c === 2).length")
    assert tab.js("document.querySelector('#prediction-pages .count').textContent") == f"{count} of 60 nodes"


def test_the_lines_that_are_shown_can_be_saved_as_csv(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["fit"])
    tab.js(
        "{ const pick = document.querySelectorAll('#prediction-filters select')[1]; pick.value = '0';"
        " pick.dispatchEvent(new Event('change')); }"
    )
    text = tab.js(
        "new Promise((done) => { URL.createObjectURL = (blob) => { blob.text().then(done); return 'blob:x'; };"
        " document.querySelector('#prediction-filters .export').click(); })"
    )
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["Source"] for row in rows] == ["given"] * 18
    confidence = [float(row["Confidence"]) for row in rows]
    assert confidence == sorted(confidence)
    names = tab.js(f"{FACTS}.nodes.name")
    assert {row["Node"] for row in rows} <= {*names, "'" + names[1]}


@pytest.mark.parametrize("name", ["fit", "run", "suite", "soft", "sampled", "collapsed"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_overlaps_or_is_cut(tab: Browser, pages: dict[str, Path], name: str, width: int) -> None:
    tab.open(pages[name], width=width)
    tab.js("document.querySelectorAll('.data').forEach((part) => { part.open = true; })")
    assert tab.js(UNREADABLE) == []
    if width == 390 and name != "suite":  # wide tables scroll
        assert tab.js(BEYOND) == []


def test_the_keyboard_alone_is_enough(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["fit"])
    for _ in range(60):
        tab.press("Tab")
        if tab.js("document.activeElement.id") == "find":
            break
    for letter in "17":
        tab.press(letter)
    tab.press("ArrowDown")
    tab.press("Enter")
    assert tab.js("document.querySelector('#why b').textContent") == "17"
    for _ in range(60):
        tab.press("Tab")
        if tab.js("document.activeElement.textContent").startswith("Confidence"):
            break
    tab.press("Enter")
    # the focus stays, so that a second press turns the order again
    assert tab.js("document.activeElement.textContent") == "Confidence ↓"
    tab.press("Enter")
    assert tab.js("document.activeElement.textContent") == "Confidence ↑"


def test_given_nodes_keep_their_own_colour_in_a_collapsed_run(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["collapsed"])
    given = "[...document.querySelectorAll('#scatter svg > rect')].slice(1).map((node) => node.getAttribute('fill'))"
    assert set(tab.js(given)) == {"var(--c0)", "var(--c1)", "var(--c2)"}


def test_the_page_says_where_own_features_outweigh_the_labelled_neighbours(
    tab: Browser, pages: dict[str, Path]
) -> None:
    tab.open(pages["collapsed"])
    search(tab, "6")  # of class 0 on the rings
    words = tab.js("document.querySelector('#why .against').textContent")
    assert words.startswith("By these shares it would be ")
    assert words.endswith("it uses other information too.")


def test_soft_labels_are_explained_in_plain_words(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["soft"])
    search(tab, "40")
    words = tab.js("document.querySelector('#why .rounds').textContent")
    assert words.startswith("Its soft label in round ")
    assert "times the mean weight of a given label" in words


def test_where_several_models_are_averaged_the_page_says_whose_rounds_are_drawn(
    tab: Browser, pages: dict[str, Path]
) -> None:
    begins = {"averaged": "One of the 2 models, walk · soft (60\u00a0% of the weight): its soft", "soft": "Its soft"}
    titles = {"averaged": "Accuracy by round of walk · soft", "soft": "Accuracy by round"}
    soft_label = {"averaged": "Soft label (model with most weight)", "soft": "Soft label"}
    for name, begin in begins.items():
        tab.open(pages[name])
        search(tab, "40")
        assert tab.js("document.querySelector('#why .rounds').textContent").startswith(begin)
        assert tab.js("document.querySelector('#rounds h2').textContent") == titles[name]
        assert tab.js("document.querySelector('#seconds').hidden") is (name == "averaged")
        heads = tab.js("[...document.querySelectorAll('#predicted th')].map((cell) => cell.textContent)")
        assert {soft_label[name], "Weight"} <= set(heads)
    assert tab.js("document.querySelector('#adopted h2').textContent") == "Soft labels by class"
    assert tab.js("document.querySelector('#pseudo').hidden") is True


def test_it_says_what_to_label_next_and_why(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["unmarked"], height=3000)
    rows = tab.js("[...document.querySelectorAll('#suggested tbody tr')].map((row) => row.textContent)")
    text = tab.js(f"{FACTS}.next.reason")
    assert len(rows) == len(text) > 0
    assert all(reason in row for reason, row in zip(text, rows, strict=True))
    visible = "[...document.querySelectorAll('#suggested tbody tr')].filter((row) => !row.hidden).length"
    assert tab.js(visible) == 5
    tab.js("document.querySelector('#next > .tools button').click()")
    assert tab.js(visible) == len(rows)
    assert f"ordered by {tab.js(f'{FACTS}.next.order')}" in tab.js("document.querySelector('#next .sub').textContent")
    known = tab.js(f"{FACTS}.next.node.map((node) => {FACTS}.nodes.known[node])")
    assert set(known) == {-1}
    name = tab.js("document.querySelector('#suggested tbody button').textContent")
    tab.js("document.querySelector('#suggested tbody button').click()")
    assert tab.js("document.querySelector('#why b').textContent") == name
    for other in ("run", "fit"):  # of an experiment, and where all other labels are known to the exam
        tab.open(pages[other])
        assert tab.js("document.querySelector('#next').hidden")
