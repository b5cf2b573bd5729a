"""A page says what the reports say, in sections that are there when their data is."""

import gzip
import json
import math
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from journals import scaling
from pages import (
    EVIL,
    STORED,
    attribution,
    corun,
    decision,
    host,
    measured,
    page_of,
    remedy,
    run,
    tried,
    whole,
)

from analysis.corun import Cell, CorunReport
from analysis.load import Results
from analysis.page import html, markdown
from analysis.page.answers import answers, sentence
from analysis.page.build import build, host_page
from analysis.page.document import FORMAT, VERSION, as_document
from analysis.page.markup import VOID
from analysis.page.model import Charts, Matrix, MatrixCell, Table
from analysis.page.sections import SECTIONS, interference
from analysis.page.source import Options, read
from analysis.page.writer import Writer
from analysis.proxy import ProxyReport, SettingResult, Throughput
from analysis.report import Report
from analysis.stats import decide
from analysis.wording import cause
from bench.errors import PagestormError, UsageError

TIMELINES = Path(__file__).parents[1] / "data" / "timelines"


class Checker(HTMLParser):
    """Tags balance, ids are unique, nothing comes from elsewhere, headings are in order."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.texts, self.links, self.levels = [], [], [], [], []
        self.tags = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append((tag, given))
        assert len(given) == len(attrs), f"an attribute twice: {attrs}"
        if "id" in given:
            self.ids.append(given["id"])
        for name in ("src", "href", "action", "data", "poster", "xlink:href"):
            if name in given:
                self.links.append(given[name])
        assert not [name for name in given if name.startswith("on")], given
        if tag not in VOID and tag != "link":
            self.open.append(tag)
        if tag in ("h1", "h2", "h3", "h4", "h5"):
            self.levels.append(int(tag[1]))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.texts.append(data)


def check(text):
    checker = Checker()
    checker.feed(text)
    checker.close()
    assert checker.open == []
    assert len(checker.ids) == len(set(checker.ids))
    inner = [link[1:] for link in checker.links if link.startswith("#")]
    assert set(inner) <= set(checker.ids), "every link leads somewhere"
    assert [x for x in checker.links if not x.startswith("#")] == ["data:,"]
    assert checker.levels[0] == 1
    steps = zip(checker.levels, checker.levels[1:], strict=False)
    assert all(after <= before + 1 for before, after in steps), "no level of heading is left out"
    return checker


@pytest.fixture(scope="module")
def every():
    return page_of(whole())


def section(page, name, i=0):
    return next(s for s in page.hosts[i].sections if s.id == name)


def blocks(page, name, kind):
    return [block for block in section(page, name).blocks if isinstance(block, kind)]


def test_a_whole_page_is_valid_html_that_needs_nothing_else(every):
    text = html.render(every)
    checker = check(text)
    assert "@import" not in text
    assert "url(" not in text
    for tag, given in checker.tags:
        if tag == "svg" and given.get("aria-hidden") != "true":
            assert given["role"] == "img"
            assert set(given["aria-labelledby"].split()) <= set(checker.ids)
        if tag == "th":
            assert given["scope"] in ("row", "col")


def test_every_section_of_the_registry_can_appear(every):
    found = {s.id for s in every.hosts[0].sections}
    assert found == {
        "host", "pages", "values", "scaling", "loaded", "interference", "beside", "why", "stalls",
        "remedies", "tried", "pipeline", "limits", "reproduce",
    }  # fmt: skip
    # The sample compares nothing else, and has no log of a pipeline.
    assert len(SECTIONS) == len(found) + 2


def test_sections_without_data_are_left_out():
    found = [s.id for s in host_page(host(run("corun", corun()))).sections]
    assert found == ["interference", "limits"]


def test_several_hosts_are_compared_first(tmp_path):
    scaling(tmp_path / "large", host="large")
    page = build([STORED, tmp_path])
    assert [h.name for h in page.hosts] == ["vm", "large"]
    (table,) = page.overview
    assert [row[0].text for row in table.rows] == ["vm", "large"]
    check(html.render(page))


def test_runs_of_one_host_come_together(tmp_path):
    scaling(tmp_path / "one")
    scaling(tmp_path / "two")
    (only,) = build([tmp_path]).hosts
    captions = [b.caption for s in only.sections for b in s.blocks if isinstance(b, Table)]
    assert any(caption.endswith("(one)") for caption in captions)
    assert any(caption.endswith("(two)") for caption in captions)


def test_runs_of_one_name_are_told_apart_by_their_folders(tmp_path):
    for name in ("june/run", "july/run"):
        scaling(tmp_path / name)
    (host,) = read([tmp_path], Options())
    names = [run.name for run in host.runs]
    assert names[0] == "run"
    assert names[1] in ("june/run", "july/run")


def test_uneven_splits_have_a_matrix_for_each_way():
    ways = [Cell("a", "b", t, "shared", decision(r), decision(r)) for t, r in
            (((2, 6), 1.3), ((6, 2), 1.1))]  # fmt: skip
    report = CorunReport("out", "done", 6, 6, ["a", "b"], ways)
    shown = blocks_of(report)
    assert [m.caption.partition(",")[0] for m in shown] == [
        "2:6 threads (victim:aggressor)", "6:2 threads (victim:aggressor)",
    ]  # fmt: skip
    assert [m.cells[0][0].text for m in shown] == ["1.30+", "1.10+"]


def blocks_of(report):
    made = interference.section(host(run("corun", report)))
    return [block for block in made.blocks if isinstance(block, Matrix)]


def test_few_percent_are_not_shaded_like_the_worst():
    cells = ((MatrixCell("1.10", 1.1),),)
    text = str(Writer(level=2).blocks([Matrix("m", "", ("a",), ("b",), cells, "times")]))
    assert "--v:0.138" in text


def test_hosts_of_one_name_are_told_apart(tmp_path):
    for name in ("a", "b"):
        scaling(tmp_path / name)
    facts = json.loads((tmp_path / "b" / "host.json").read_text())
    facts["cpus"]["online"] = "0-63"
    (tmp_path / "b" / "host.json").write_text(json.dumps(facts))
    assert [h.name for h in build([tmp_path]).hosts] == ["vm (a)", "vm (b)"]


def test_a_run_without_values_belongs_to_the_host_of_its_boot(tmp_path):
    scaling(tmp_path / "one")
    scaling(tmp_path / "cut")
    journal = tmp_path / "cut" / "journal.ndjson"
    journal.write_text(journal.read_text().partition("\n")[0] + "\n")
    page = build([tmp_path])
    assert [h.name for h in page.hosts] == ["vm"]
    check(html.render(page))


# ---- what it says --------------------------------------------------------------------------------


def test_tables_say_what_the_report_says():
    one = measured()
    page = page_of(host(one))
    (table,) = blocks(page, "pages", Table)
    tested = [c for c in one.report.comparisons if c.question == "pages" and c.decision.n]
    assert [row[-1].text for row in table.rows] == [c.decision.verdict for c in tested]
    assert [row[4].value for row in table.rows] == [c.gain[0] for c in tested]
    values = {
        (row[0].text, row[1].value, row[2].text, row[3].value)
        for table in blocks(page, "values", Table)
        for row in table.rows
    }
    assert values == {(c.label, c.size, c.pages, c.threads) for c in one.report.cases}


def test_a_fitted_curve_has_points_intervals_line_and_band(tmp_path):
    page = build([scaling(tmp_path / "run")])
    (charts,) = blocks(page, "scaling", Charts)
    (chart,) = charts.charts
    assert {series.name.partition(",")[0] for series in chart.series} == {"base", "thp"}
    for series in chart.series:
        assert len(series.points) == 10
        assert all(point.low <= point.y <= point.high for point in series.points)
        assert series.line
        assert series.band
    assert "knee" in html.render(page)


def test_the_matrix_shades_slowdowns(every):
    shared, own = blocks(every, "interference", Matrix)
    assert shared.rows == ("scan", "storm[chunk=4096]")
    assert [[c.text for c in row] for row in shared.cells] == [["1.10+", "1.80+"]] * 2
    assert own.caption != shared.caption
    assert "--v:0.848" in html.render(every), "1.8 of a scale that ends at 2"


def test_a_prediction_stands_beside_the_measurement(every):
    table = next(t for t in blocks(every, "remedies", Table) if "total work" in t.caption)
    names = [column.name for column in table.columns]
    row = table.rows[0]
    assert row[names.index("gain")].text == "+25%"
    assert row[names.index("predicted")].text == "+15%"
    bar = next(cell.bar for cell in row if cell.bar)
    assert bar.value == pytest.approx(1.25, abs=0.02)
    assert bar.predicted == pytest.approx(1.15)


def test_remedies_of_a_command_come_with_evidence(every):
    gains, seen = blocks(every, "tried", Table)
    assert [row[0].text for row in gains.rows] == ["baseline", "thp", "cap", "keep"]
    assert [row[-1].text for row in gains.rows] == ["", "helps", "cannot tell", "fails"]
    assert [row[1].text for row in seen.rows] == ["0%", "87%", "-", "-"]
    assert "thp helps your command, +25%" in every.hosts[0].verdict


def test_a_pipeline_has_its_settings_tasks_and_pools(every):
    settings, tasks, pools = blocks(every, "pipeline", Table)
    assert [row[0].text for row in settings.rows] == ["pw=1", "pw=2"]
    assert [row[-1].text for row in settings.rows] == ["baseline", "helps"]
    assert [cell.text for cell in tasks.rows[0][:4]] == ["pw=2", "mv", "20.0", "40.0"]
    assert pools.rows[0][3].text == "40%"
    assert "pw=2 speeds line up, +100%" in every.hosts[0].verdict


def test_a_setting_that_ran_faster_is_named_though_nothing_is_decided():
    settings = [
        SettingResult(f"pw={n}", Throughput(2.0 / n, 1.9 / n, 2.1 / n, 8, "samples", 40))
        for n in (1, 2, 4, 8, 16)
    ]
    for setting in settings[1:]:
        object.__setattr__(setting, "against", decide(np.log([0.5, 0.5, 0.5])))
    answer = shorts(ProxyReport("line", tuple(settings)))["How fast is line?"]
    assert answer.short == (
        "line takes 2.00 s a job with pw=1, and 0.125 s with pw=16, which is not decided"
    )
    assert answer.look == "unclear"
    assert "Not decided: 3 pairs" in answer.text
    assert "pw=2:" not in answer.text, "the tables have all"


def test_what_only_a_pipeline_tried_is_not_called_untried():
    names = ("pw=1,mv.pages=base", "pw=1,mv.pages=thp mutex:mv")
    report = ProxyReport("line", tuple(SettingResult(name, Throughput()) for name in names))
    found = shorts(report)
    assert found["Which page size?"].short == "page sizes were tried in line only"
    assert found["Does an interlock pay?"].short == "interlocks were tried in line only"
    assert not found["Which page size?"].untried


def test_nothing_slow_among_undecided_pairs_is_no_all_clear():
    report = corun()
    for cell in report.cells:
        object.__setattr__(cell, "alone", decide(np.log([1.5, 1.6])))
    answer = shorts(report)["Who slows whom?"]
    assert answer.look == "unclear"
    assert "cannot be told" in answer.text


def test_the_log_beside_a_run_tells_of_overlap(tmp_path):
    path = scaling(tmp_path / "run", counts=(1, 2))
    log = gzip.decompress((TIMELINES / "prover.log.gz").read_bytes())
    (path / "timeline.log").write_bytes(log)
    page = build([path])
    captions = [table.caption for table in blocks(page, "log", Table)]
    assert any("overlap" in caption for caption in captions)
    check(html.render(page))


def test_every_figure_says_how_to_get_it_again():
    page = page_of(host(measured()))
    digest = measured().digest
    for one in page.hosts[0].sections:
        if any(isinstance(block, Charts) for block in one.blocks):
            assert [(s.command, s.digest) for s in one.sources] == [("pagestorm run", digest)]
    assert digest in html.render(page)


def test_what_another_run_of_the_host_settled_is_not_open():
    alone = [note.what for note in measured().report.not_tested]
    assert any("keeping" in what for what in alone)
    text = html.render(page_of(host(measured(), run("remedy", remedy()))))
    assert "keeping memory-heavy phases apart" not in text


# ---- the verdict ---------------------------------------------------------------------------------


def compared(*pairs, question="pages"):
    """A report of comparisons: (label, change, ratio of times)."""
    like = next(c for c in measured().report.comparisons if c.question == "pages" and c.decision.n)
    report = Report("out/run", "done", 8, 8)
    report.comparisons = [
        replace(like, label=label, change=change, question=question, decision=decision(*ratio))
        for label, change, *ratio in pairs
    ]
    return report


def shorts(*reports):
    found = answers(host(*(run(f"r{i}", report) for i, report in enumerate(reports))))
    return {answer.question: answer for answer in found}


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([("chase", "base -> thp", 0.8), ("scan", "base -> thp", 1.0)], "use thp for chase"),
        ([("chase", "base -> thp", 0.8), ("scan", "base -> thp", 1.3)], "and not for scan"),
        ([("chase", "base -> thp", 1.3)], "stay with base: thp slows chase"),
        ([("chase", "base -> thp", 1.0)], "page size makes no difference"),
        ([("chase", "base -> thp", 1.0, 0.5)], "cannot be told"),
        ([("a", "base -> thp", 0.9), ("a", "base -> 2m", 0.8), ("b", "base -> 2m", 0.8)], "use 2m"),
    ],
)
def test_the_page_size_follows_the_verdicts(pairs, said):
    assert said in shorts(compared(*pairs))["Which page size?"].short


def test_the_number_of_threads_is_where_more_add_nothing(tmp_path):
    page = build([scaling(tmp_path / "run")])
    answer = page.hosts[0].answers[1]
    assert answer.short == "6 threads move all there is"
    assert "saturates at 60" in answer.text


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ([("mutex", 0.8), ("thp", 0.7)], "mutex pays, +25%"),
        ([("mutex", 1.2), ("thp", 0.7)], "no interlock of those tested pays, and 1 of 1 hurt"),
        ([("thp", 0.7)], "not tried"),
        ([("mutex", 1.0, 0.5)], "no interlock of those tested is shown to pay"),
        ([("thp+mutex", 0.7)], "not tried"),
    ],
)
def test_an_interlock_pays_by_what_it_brings_beyond_pages(ratios, said):
    report = remedy(ratios=[(name, ratio) for name, ratio, *_ in ratios])
    for result, (_, ratio, *spread) in zip(report.remedies, ratios, strict=True):
        object.__setattr__(result, "total", decision(ratio, *spread))
        object.__setattr__(result, "critical", decision(1.0))
    assert said in shorts(report)["Does an interlock pay?"].short


def test_a_cause_that_no_spinners_tested_is_not_called_open():
    found = remedy(ratios=[("mutex", 1.4)]).remedies[0]
    assert cause(found) == "memory"
    object.__setattr__(found, "cause", "cannot tell")
    assert cause(found) == "not tested"
    object.__setattr__(found, "among_spinners", decision(1.0))
    assert cause(found) == "cannot tell"


def test_a_combination_counts_where_it_beats_its_pages():
    report = remedy(ratios=[("thp+mutex", 0.7)])
    object.__setattr__(report.remedies[0], "beyond", {"thp": decision(0.9)})
    assert "mutex beside thp pays" in shorts(report)["Does an interlock pay?"].short


def test_the_sentence_names_what_nobody_tried():
    said = sentence(answers(host(run("corun", corun()))))
    assert "page sizes, numbers of threads and interlocks were not tried" in said
    assert said.startswith("Most slowed is scan")
    said = sentence(answers(host(run("a", attribution()))))
    assert said.startswith("Bandwidth costs chase beside scan most, +30%")


def test_open_comparisons_are_counted():
    open_ = compared(("a", "base -> thp", 1.0, 0.5), ("b", "base -> thp", 0.8))
    answer = shorts(open_)["What can these results not tell?"]
    assert answer.short == "1 of 2 comparisons stays open"
    few = compared(("a", "base -> thp", 1.0, 0.5, 3))
    assert "too few samples" in shorts(few)["What can these results not tell?"].text


# ---- names from users ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def evil():
    one = host(
        run(EVIL, corun(("scan", EVIL))), run("remedy", remedy(EVIL)), measured(EVIL), name=EVIL
    )
    return page_of(one, replace(one, name="other"), title=EVIL)


def test_names_are_text_in_html(evil):
    text = html.render(evil)
    checker = check(text)
    tags = [tag for tag, _ in checker.tags]
    assert tags.count("script") == 1
    assert "img" not in tags
    # A break may stand before a bracket.
    assert any("<script>alert(1)</script>" in data for data in checker.texts)


def test_names_are_text_in_markdown(evil):
    text = markdown.render(evil)
    outside_code = "".join(text.split("`")[::2])
    assert "<script" not in outside_code
    assert "<img" not in outside_code
    assert "[a](" not in text


def test_a_name_cannot_end_the_code_of_markdown():
    assert markdown._code("a ``b` c") == "``` a ``b` c ```"


# ---- other formats -------------------------------------------------------------------------------


def test_markdown_has_the_verdict_first_and_every_table(every):
    text = markdown.render(every)
    lines = [line for line in text.splitlines() if line]
    assert lines[0] == "# A title"
    assert lines[1].startswith("**")
    captions = [
        b.caption for s in every.hosts[0].sections for b in s.blocks if isinstance(b, Table)
    ]
    assert all(f"**{markdown._text(caption)}**" in lines for caption in captions)
    rows = [line for line in lines if line.startswith("|")]
    assert all(row.endswith("|") for row in rows)


def test_json_is_versioned_and_whole(every):
    document = json.loads(json.dumps(as_document(every), allow_nan=False))
    assert (document["format"], document["version"]) == (FORMAT, VERSION)
    (one,) = document["hosts"]
    assert one["verdict"] == every.hosts[0].verdict
    kinds = {block["kind"] for section in one["sections"] for block in section["blocks"]}
    assert kinds == {"table", "matrix", "charts", "facts", "listing", "items", "commands", "text"}
    table = next(
        b
        for s in one["sections"]
        if s["id"] == "pages"
        for b in s["blocks"]
        if b["kind"] == "table"
    )
    assert {"text", "value"} <= table["rows"][0][0].keys()


def test_a_page_of_many_cases_stays_small(tmp_path):
    counts = tuple(range(1, 129))
    path = scaling(tmp_path / "run", counts=counts)
    assert len(html.render(build([path]))) < 3_000_000


# ---- results that are not all there --------------------------------------------------------------


def test_a_pyperf_file_of_ours_gives_values_and_says_what_it_lacks(tmp_path):
    path = STORED / "pyperf.json.gz"
    page = build([path])
    names = [s.id for s in page.hosts[0].sections]
    assert "values" in names
    assert "pages" not in names
    assert "it is not beside these values" in html.render(page)
    said = page.hosts[0].answers[0]
    assert said.short == "whether page sizes matter is not in these files"
    assert not said.untried, "they may well have been tried"


def test_plain_pyperf_is_refused_by_name(tmp_path):
    path = tmp_path / "theirs.json"
    path.write_text(
        json.dumps(
            {
                "version": "1.0",
                "benchmarks": [{"metadata": {"name": "json_dumps"}, "runs": [{"values": [0.1]}]}],
            }
        )
    )
    with pytest.raises(UsageError, match=r"theirs\.json: 'json_dumps' is not a benchmark of this"):
        build([path])


def test_other_files_and_nothing_are_refused(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        build([tmp_path / "none"])
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(PagestormError, match="not a pyperf file"):
        build([tmp_path])


def test_an_empty_report_still_makes_a_page():
    page = page_of(host(run("empty", Report("out", "interrupted", 0, 6))))
    check(html.render(page))
    markdown.render(page)
    as_document(page)


def test_options_reach_the_verdicts():
    def verdicts(rule):
        page = build([STORED], Options(rule=rule))
        (table,) = blocks(page, "pages", Table)
        return [row[-1].text for row in table.rows], table

    narrow, table = verdicts({})
    wide, wide_table = verdicts({"dead_band": 0.9})
    assert "helps" in narrow
    assert "helps" not in wide
    bands = [next(c.band for c in t.columns if c.band) for t in (table, wide_table)]
    assert bands[1][1] == pytest.approx(1.9)
    assert bands[0][1] == pytest.approx(1.02)


# ---- notebooks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("report", [corun(), remedy(), attribution(), tried(), measured().report])
def test_reports_display_in_the_style_of_the_page(report):
    text = report._repr_html_()
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert text.startswith('<div class="pagestorm">')
    assert "script" not in [tag for tag, _ in checker.tags]
    again = Checker()
    again.feed(report._repr_html_())
    assert not set(checker.ids) & set(again.ids), "cells of one notebook share no id"


def test_three_lines_show_results_and_their_parts():
    from analysis import show

    results = show(STORED)
    text = results._repr_html_()
    assert results.page.hosts[0].verdict.partition(";")[0] in text
    assert {"pages", "values", "limits"} <= set(results.parts)
    part = results["pages"]._repr_html_()
    assert "Page sizes" in part
    assert "Threads" not in part
    assert len(results.frame) > 100
    with pytest.raises(UsageError, match="no part 'nothing'") as refused:
        results["nothing"]
    assert "host, pages" in refused.value.remedy


def test_results_display_as_the_page_of_their_folder(tmp_path):
    from analysis.load import load

    assert "6 threads move all there is" in load(scaling(tmp_path / "a"))._repr_html_()
    assert isinstance(load(STORED), Results)
    assert math.isfinite(len(load(STORED).rows))
