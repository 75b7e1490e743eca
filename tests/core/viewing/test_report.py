"""``wer report``: one file with the page and its data in it, whole or not at all."""

from __future__ import annotations

import json
import re

import pytest
from support.browsing import browsing
from support.viewed import HOSTILE, grown, recorded

from wer.cli import main
from wer.viewing.bundling import bundle, write_file


@pytest.mark.slow
async def test_the_file_shows_the_same_pages_and_fetches_nothing(tmp_path):
    folder, out = recorded(tmp_path), tmp_path / "report.html"
    write_file(folder, out)

    async with browsing() as browsed:
        await browsed.page.goto(out.as_uri())
        overview = await browsed.settled()
        skills = await browsed.tab("Skills")
        await browsed.page.click("text=a matched pair")
        pair = await browsed.settled()

    assert "refined skill" in overview
    assert "Look the order up first" in skills
    assert "here they part" in pair
    assert browsed.wrong == []
    assert {each.partition("#")[0] for each in browsed.asked} == {out.as_uri()}


@pytest.mark.slow
async def test_nothing_runs_that_a_run_has_in_it(tmp_path):
    folder, out = recorded(tmp_path, HOSTILE), tmp_path / "report.html"
    write_file(folder, out)

    async with browsing() as browsed:
        await browsed.page.goto(out.as_uri())
        read = [await browsed.settled(), await browsed.tab("Skills"), await browsed.tab("Pairs")]
        ran = await browsed.page.evaluate("window.ran")

    assert ran is None
    assert browsed.wrong == []
    assert "<script>window.ran = 1</script>" in "".join(read)


@pytest.mark.slow
async def test_what_is_left_out_of_a_large_run_is_said(tmp_path):
    folder, out = grown(tmp_path, 2_000), tmp_path / "report.html"

    told = write_file(folder, out)
    async with browsing() as browsed:
        await browsed.page.goto(out.as_uri())
        await browsed.settled()
        await browsed.page.click("text=What is left out of this file")
        overview = await browsed.settled()
        await browsed.tab("Rollouts")
        await browsed.page.click("#main nav.pager a")
        missing = await browsed.settled()

    assert out.stat().st_size < 8_000_000
    assert re.search(r"left out: \d+ of \d+ pairs that revisions were written from", told)
    assert "pairs that revisions were written from" in overview
    assert "wer view" in missing


def test_nothing_is_left_out_of_a_small_run(tmp_path):
    folder, out = recorded(tmp_path), tmp_path / "report.html"

    assert write_file(folder, out) == str(out)


def test_data_in_the_file_cannot_end_its_script(tmp_path):
    folder, out = recorded(tmp_path, HOSTILE), tmp_path / "report.html"

    write_file(folder, out)

    [data] = re.findall(r'<script type="application/json" id="data">(.*)</script>', out.read_text("utf-8"))
    assert not set("<>&\u2028\u2029") & set(data)
    assert "<script>" in json.loads(data)["answers"]["overview"]["findings"][-2]


def test_the_scripts_are_one_script_without_imports():
    assert "import" not in re.findall(r"^\s*(\w+)", bundle(), re.MULTILINE)
    assert "export" not in re.findall(r"^\s*(\w+)", bundle(), re.MULTILINE)


def test_a_file_that_cannot_be_written_leaves_nothing_of_it(tmp_path, capsys):
    folder, place = recorded(tmp_path / "runs"), tmp_path / "place"
    (place / "report.html").mkdir(parents=True)

    with pytest.raises(SystemExit) as ended:
        main(["report", str(folder), "-o", str(place / "report.html")])

    assert ended.value.code == 2
    assert "Choose another place with --out" in capsys.readouterr().err
    assert [each.name for each in place.iterdir()] == ["report.html"]


def test_a_report_is_not_written_over_something_else(tmp_path, capsys):
    folder = recorded(tmp_path)

    with pytest.raises(SystemExit):
        main(["report", str(folder), "-o", str(folder / "wer.sqlite")])

    assert "end it with .html" in capsys.readouterr().err


def test_a_report_is_put_into_the_run_unless_told_otherwise(tmp_path, capsys):
    folder = recorded(tmp_path)

    with pytest.raises(SystemExit) as ended:
        main(["report", str(folder)])

    assert not ended.value.code
    assert str(folder / "report.html") in "".join(capsys.readouterr().out.split("\n"))
    assert (folder / "report.html").stat().st_size > 20_000
