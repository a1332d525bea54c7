"""The page in a real browser: it draws itself, answers the mouse, and keeps to itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bangs.experiments.results import gather
from bangs.experiments.suites.read import read_suite
from bangs.report.page import render
from bangs.report.suite import write_suite_page
from tests.helpers.small_graphs import fake_rows, suite_file
from tests.report.browser import CHROMIUM, Browser, browser
from tests.report.sample_runs import SCRIPT, experiment_story, fit_story

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; `make browser` installs Debian's")

TABLE = "[...document.querySelectorAll('#candidates tbody tr')]"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {"fit": fit_story(), "run": experiment_story()}
    for name, run_data in made.items():
        (folder / f"{name}.html").write_text(render(run_data), encoding="utf-8")
    suite = read_suite(suite_file(folder))
    rows = [row for cell in suite.cells() for row in fake_rows(cell.experiment, [[0.6, 0.7], [0.5, 0.8]])]
    write_suite_page([suite], gather(rows), folder / "suite.html")
    return {name: folder / f"{name}.html" for name in (*made, "suite")}


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["fit", "run", "suite"])
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
    told = tab.js(f"{TABLE}.map(row => row.lastChild.textContent).join('\\n')")
    assert "\u2068\u0645\u0631\u062d\u0628\u0627 7\u2069 (" in told


def test_what_a_value_means_is_said_where_values_are_shown(tab: Browser, pages: dict[str, Path]) -> None:
    for name, words in (("fit", "candidates of a round. Those right of the cut"), ("run", "nodes a round adopted")):
        tab.open(pages[name])
        told = tab.js("document.querySelector('#values .sub').textContent")
        assert f"Banzhaf value of the {words}" in told
        assert "how much a node's label adds to what the model would know of the others" in told


def test_search_narrows_and_sort_orders_the_table(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["fit"])
    everything = tab.js(f"{TABLE}.length")
    name = tab.js(f"{TABLE}[3].querySelector('button').textContent")
    tab.js(
        "{ const field = document.querySelector('#search');"
        f" field.value = {name!r}; field.dispatchEvent(new Event('input')); }}"
    )
    found = tab.js(f"{TABLE}.map((row) => row.textContent)")
    assert 0 < len(found) < everything
    assert all(name in text for text in found)
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
    assert "sure" in shown
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


def test_it_prints_without_the_controls(tab: Browser, pages: dict[str, Path]) -> None:
    tab.open(pages["fit"], dark=True)
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.js("getComputedStyle(document.querySelector('#filters')).display") == "none"
    assert tab.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tab.call("Emulation.setEmulatedMedia", media="")
