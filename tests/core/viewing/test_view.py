"""``wer view`` in a real browser: every page of a run, live, and never what hostile text would have it do."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import webbrowser
from contextlib import ExitStack, closing, contextmanager

import pytest
from support.browsing import browsing
from support.viewed import HOSTILE, recorded

from wer import folders
from wer.cli import main
from wer.records import Usage
from wer.store import Store
from wer.viewing.serving import bound

TABS = ("Overview", "Lineage", "Pairs", "Skills", "Rollouts")


@contextmanager
def viewed(*words):
    """Run ``wer view`` and give the address that it prints; it has to end well on Ctrl-C."""
    command = [sys.executable, "-m", "wer", "view", *words, "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:"), process.stderr.read()
            yield address
        finally:
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=30)
    assert process.returncode == 0
    assert told == ""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run with hostile text, and a newer one."""
    root = tmp_path_factory.mktemp("runs")
    hostile, newest = recorded(root, HOSTILE), recorded(root)
    os.utime(hostile / "run.toml", (1, 1))
    return hostile, newest


@pytest.fixture(scope="module")
def address(runs):
    """Where all runs are viewed."""
    with viewed("--runs", str(runs[0].parent)) as found:
        yield found


async def through(browsed, run):
    """Visit whatever the tabs and the first links of every list lead to; gives all that could be read."""
    read = []
    for tab in TABS:
        await browsed.page.evaluate("address => { location.hash = address }", f"#/{run.name}/{tab.lower()}")
        read.append(await browsed.settled())
        links = await browsed.page.eval_on_selector_all("#main td a", "all => all.map(each => each.hash)")
        for place in dict.fromkeys(links[:3]):
            await browsed.page.evaluate("address => { location.hash = address }", place)
            read.append(await browsed.settled())
    return "\n".join(read)


@pytest.mark.slow
async def test_a_run_is_seen_from_its_table_to_the_pair_behind_a_line(address, runs):
    async with browsing() as browsed:
        page = browsed.page
        await page.goto(address)
        overview = await browsed.settled()
        await page.click("tr:has-text('refined skill'):has-text('no skill') >> text=see the pairs")
        pairs = await browsed.settled()
        await browsed.tab("Skills")
        await page.click("text=a matched pair")
        pair = await browsed.settled()
        await browsed.tab("Skills")
        await page.click("text=from no skill")
        alone = await browsed.settled()
        await page.click("text=WER")
        listed = await browsed.settled()

    assert "token" not in page.url
    assert runs[1].name in overview
    assert "refined skill" in overview and "100.0 [" in overview
    assert "mended 1" in pairs
    assert "not paid" in pair and "here they part" in pair
    assert "Changes to the seed skill" not in alone and "Its lines" in alone
    assert all(run.name in listed for run in runs)
    assert browsed.wrong == []


@pytest.mark.slow
async def test_it_reads_well_narrow_and_dark_without_a_mouse_and_asks_nobody_else(address, runs):
    async with browsing(width=400, dark=True) as browsed:
        page = browsed.page
        await page.goto(address)
        read = await through(browsed, runs[1])
        overflowing = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        await browsed.tab("Lineage")
        await page.focus("#main td a")
        await page.keyboard.press("Enter")
        await browsed.settled()
        await page.focus("a.node.unreadable")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".panel :text('no <skill> block')")
        focused = await page.evaluate("document.activeElement.className")

    assert "Revision tree" in read and "Look the order up first" in read
    assert overflowing <= 0
    assert focused == "panel"
    assert browsed.wrong == []
    assert {each[: each.index("/", 8)] for each in browsed.asked} == {address[: address.index("/", 8)]}


@pytest.mark.slow
async def test_nothing_runs_that_skills_tasks_and_trajectories_have_in_them(address, runs):
    async with browsing() as browsed:
        await browsed.page.goto(address)
        read = await through(browsed, runs[0])
        ran = await browsed.page.evaluate("window.ran")
        made = await browsed.page.evaluate("document.querySelectorAll('img, iframe, #main script').length")

    assert ran is None
    assert made == 0
    assert browsed.wrong == []
    assert "<script>window.ran = 1</script>" in read
    assert "U+001B" in read and "U+202E" in read and "U+D800" not in read


@pytest.mark.slow
async def test_the_rest_of_a_long_text_goes_on_where_its_beginning_ends(tmp_path):
    folder = recorded(tmp_path, "\U0001f600" * 60, text_length=4_000)
    wanted = "answer to good " + "\U0001f600" * 60 + " " + "x" * 4_000

    with viewed(str(folder)) as address:
        async with browsing() as browsed:
            await browsed.page.goto(address)
            await browsed.settled()
            await browsed.page.evaluate(
                "hash => { location.hash = hash }", f"#/{folder.name}/rollout?key=good-rollout"
            )
            await browsed.page.click("button.more")
            await browsed.page.wait_for_selector("button.more", state="detached")
            texts = await browsed.page.eval_on_selector_all(
                ".event .words", "all => all.map(each => each.textContent)"
            )

    assert wanted in texts


@pytest.mark.slow
async def test_the_difference_of_two_texts_is_marked_in_whole_characters(tmp_path):
    folder = recorded(tmp_path)
    with closing(sqlite3.connect(folder / "wer.sqlite")) as db, db:
        for key, face in (("good-rollout", "\U0001f600"), ("bad-rollout", "\U0001f641")):
            db.execute(
                "update rollouts set json = replace(json, 'I will see.', ?) where key = ?",
                (f"I see {face}", key),
            )

    with viewed(str(folder)) as address:
        async with browsing() as browsed:
            await browsed.page.goto(address)
            await browsed.tab("Pairs")
            await browsed.page.click("text=side by side")
            await browsed.settled()
            marks = await browsed.page.eval_on_selector_all(
                "mark", "all => all.map(each => each.textContent)"
            )

    assert marks[:2] == ["\U0001f600", "\U0001f641"]


@pytest.mark.slow
async def test_the_page_follows_a_run_that_is_at_work(address, runs):
    folder = runs[1]

    with ExitStack() as ending:
        ending.enter_context(folders.locked(folder))
        async with browsing() as browsed:
            await browsed.page.goto(address)
            first = await browsed.settled()
            with closing(Store(folder / "wer.sqlite")) as store:
                store.add_spend("merger", Usage(calls=1, prompt_tokens=10))
            await browsed.page.wait_for_selector("text=merger")
            ending.close()
            await browsed.page.wait_for_selector("text=Ended, with results.")

    assert f"At work (process {os.getpid()})" in first
    assert "merger" not in first


@pytest.mark.slow
async def test_a_page_whose_server_was_ended_says_so_and_an_address_that_is_none_harms_nothing(tmp_path):
    folder = recorded(tmp_path)

    with folders.locked(folder):
        async with browsing() as browsed:
            with viewed(str(folder)) as address:
                await browsed.page.goto(address)
                await browsed.settled()
                await browsed.page.evaluate("location.hash = '#/%E0%A4%A/constructor'")
                told = await browsed.settled()
                wrong = [each for each in browsed.wrong if "404" not in each]
                await browsed.page.evaluate("location.hash = ''")
                await browsed.page.wait_for_selector("text=At work")
            await browsed.page.wait_for_selector(".state:text('no answer')")

    assert "there is no run '%E0%A4%A' here" in told
    assert wrong == []


@pytest.mark.parametrize(("chosen", "opens"), [("", False), ("links", True)])
def test_a_browser_of_the_terminal_is_opened_only_by_who_chose_it(tmp_path, monkeypatch, chosen, opens):
    folder, seen = recorded(tmp_path), tmp_path / "seen"
    browser = webbrowser.GenericBrowser(["touch", str(seen)])
    monkeypatch.setattr(webbrowser, "get", lambda: browser)
    monkeypatch.delenv("BROWSER", raising=False)
    if chosen:
        monkeypatch.setenv("BROWSER", chosen)

    def begin(viewer, listening, *, began):
        listening.close()
        before = set(threading.enumerate())
        began()
        for each in set(threading.enumerate()) - before:
            each.join()

    monkeypatch.setattr("wer.viewing.serving.serve", begin)

    with pytest.raises(SystemExit):
        main(["view", str(folder)])

    assert seen.exists() is opens


@pytest.mark.parametrize("command", ["view", "report"])
def test_a_run_that_is_not_there_is_an_error_with_those_that_are(tmp_path, capsys, command):
    folder = recorded(tmp_path)

    with pytest.raises(SystemExit) as ended:
        main([command, "runn", "--runs", str(tmp_path)])

    assert ended.value.code == 2
    assert folder.name in capsys.readouterr().err


def test_a_taken_port_is_an_error_with_what_to_do(tmp_path, capsys):
    folder = recorded(tmp_path)

    with closing(bound(0)) as taken, pytest.raises(SystemExit) as ended:
        taken.listen()
        main(["view", str(folder), "--no-open", "--port", str(taken.getsockname()[1])])

    assert ended.value.code == 2
    assert "Choose another with --port" in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(tmp_path, capsys, monkeypatch):
    folder = recorded(tmp_path)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    monkeypatch.delitem(sys.modules, "wer.viewing.serving", raising=False)

    with pytest.raises(SystemExit) as ended:
        main(["view", str(folder), "--no-open"])

    assert ended.value.code == 2
    assert "wer-skills[view]" in capsys.readouterr().err
