"""``rankeval trec``: the lines that trec_eval prints, its options, and what is said of files that cannot be read."""

from __future__ import annotations

import bz2
import gzip
import math
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import pytest

from rankeval_spark.apps.trec_report import NICKNAMES
from rankeval_spark.measures import registry
from tests.support.cli import PROJECT, rankeval

if TYPE_CHECKING:
    from pathlib import Path

    from rankeval_spark.measures.definition import Definition

SECONDS_FOR_300_MB: Final = 30
"""On a machine that does other things too; two or three by itself."""

QRELS = """\
# as text, topic 10 stands before topic 9
9 0 d2 1
9 0 d10 0
9\t0\td4\t2
10 0 d1 1
10 0 d#7 -1
"""

RUN = """\
9 Q0 d10 1 3.5 a_run
9 Q0 d2 2 3.5 a_run
9 Q0 d4 3 1e-1 a_run
9 Q0 d9 4 +7. a_run

10 Q0 d#7 1 2 a_run and what follows
10 Q0 d1 1 -Inf a_run
77 Q0 d1 1 1 another_run
"""

LINES = """\
num_ret               	10	2
num_rel               	10	1
num_rel_ret           	10	1
map                   	10	0.5000
P_1                   	10	0.0000
P_3                   	10	0.3333
relstring             	10	'.1'
num_ret               	9	4
num_rel               	9	2
num_rel_ret           	9	2
map                   	9	0.5000
P_1                   	9	0.0000
P_3                   	9	0.3333
relstring             	9	'-102'
runid                 	all	another_run
num_q                 	all	2
num_ret               	all	6
num_rel               	all	3
num_rel_ret           	all	3
map                   	all	0.5000
gm_map                	all	0.5000
P_1                   	all	0.0000
P_3                   	all	0.3333
"""

ASKED = [
    part
    for name in ("P.3,1", "relstring", "map", "gm_map", "runid", "num_q", "num_rel", "num_rel_ret", "num_ret")
    for part in ("-m", name)
]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Write both files."""
    return written(tmp_path, QRELS, RUN)


def written(folder: Path, qrels: str, run: str) -> tuple[Path, Path]:
    """Write judgements and a run."""
    paths = folder / "qrels.txt", folder / "run.txt"
    for path, text in zip(paths, (qrels, run), strict=True):
        path.write_bytes(text.encode())
    return paths


def printed(*arguments: object) -> dict[tuple[str, str], str]:
    """Run the command and return what it prints, by name and topic."""
    done = rankeval("trec", *arguments)
    assert (done.code, done.err) == (0, "")
    rows = (line.split("\t") for line in done.out.splitlines())
    return {(name.rstrip(), topic): value for name, topic, value in rows}


def test_lines_are_those_of_trec_eval(files: tuple[Path, Path]) -> None:
    done = rankeval("trec", "-q", *ASKED, *files)

    assert (done.code, done.err, done.out) == (0, "", LINES)


def test_topics_are_left_out_without_q_and_the_summary_with_n(files: tuple[Path, Path]) -> None:
    lines = LINES.splitlines(keepends=True)
    of_all = [line for line in lines if "\tall\t" in line]

    assert rankeval("trec", *ASKED, *files).out == "".join(of_all)
    assert rankeval("trec", "-qn", *ASKED, *files).out == "".join(line for line in lines if line not in of_all)


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_packed_files_are_unpacked(files: tuple[Path, Path], suffix: str, pack: object) -> None:
    assert callable(pack)
    packed = [path.with_name(path.name + suffix) for path in files]
    for path, target in zip(files, packed, strict=True):
        target.write_bytes(pack(path.read_bytes()))

    assert rankeval("trec", "-q", *ASKED, *packed).out == LINES


def test_lines_may_end_as_on_windows_and_the_last_one_not_at_all(tmp_path: Path) -> None:
    paths = written(tmp_path, QRELS.replace("\n", "\r\n"), RUN.rstrip("\n").replace("\n", "\r\n"))

    assert rankeval("trec", "-q", *ASKED, *paths).out == LINES


def test_official_measures_are_the_default(files: tuple[Path, Path]) -> None:
    assert rankeval("trec", *files).out == rankeval("trec", "-m", "official", *files).out
    names = [name for name, _ in printed(*files)]
    assert names[:10] == [*NICKNAMES["official"][:10]]
    assert names[10:14] == [f"iprec_at_recall_0.{tenths}0" for tenths in range(4)]
    assert names[-9:] == [f"P_{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)]


def test_names_with_parameters_are_printed_as_trec_eval_does(files: tuple[Path, Path]) -> None:
    asked = (
        "iprec_at_recall..10,.5",
        "Rprec_mult.5.0,0.2",
        "set_F.0.5",
        "success.2",
        "recall_7",
        "relstring.3",
        "unj.2",
    )
    found = printed("-q", *(part for name in asked for part in ("-m", name)), *files)

    assert [name for name, topic in found if topic == "9"] == [
        *("iprec_at_recall_0.10", "iprec_at_recall_0.50", "relstring_3", "recall_7", "Rprec_mult_0.20"),
        *("Rprec_mult_5.00", "success_2", "set_F_0.5", "unj_2"),
    ]
    assert found["relstring_3", "9"] == "'-10'"
    assert found["unj_2", "10"] == "0.5000"
    assert found["unj_2", "9"] == "0.5000"


def test_own_measures_follow_those_of_trec_eval(files: tuple[Path, Path]) -> None:
    found = printed("-m", 'nDCG( dcg="exp-log2" )@3', "-m", "MRR", "-m", "map", *files)

    assert list(found) == [("map", "all"), ("nDCG(dcg='exp-log2')@3", "all"), ("RR", "all")]
    assert found["RR", "all"] == "0.5000"


@pytest.mark.parametrize("entry", registry.entries(), ids=lambda entry: entry.name)
def test_every_measure_of_ours_is_computed_or_refused(tmp_path: Path, entry: Definition) -> None:
    """Refused is what a list and its judgements alone do not give; or scores that are no probabilities, or infinite."""
    needs_cutoff = entry.cutoff.need(entry.defaults) == "required"
    name = f"{entry.name}@2" if needs_cutoff else entry.name

    done = rankeval("trec", "-m", name, *written(tmp_path, QRELS.replace("d4\t2", "d4\t1"), RUN))

    if done.code:
        assert done.code == (3 if entry.name in {"LogLoss", "RMSE", "MSE", "MAE"} else 2)
        done.assert_readable()
    else:
        float(done.out.splitlines()[-1].split("\t")[2])


def test_level_holds_for_every_measure_that_has_one_and_names_none(files: tuple[Path, Path]) -> None:
    asked = ("map", "ndcg", "AP", "AP(rel=1)@2", "nDCG", "RBP(max_rel=2)")
    one, two = (printed("-l", level, *(part for name in asked for part in ("-m", name)), *files) for level in (1, 2))

    assert list(two) == [(name, "all") for name in ("map", "ndcg", "AP(rel=2)", "AP@2", "nDCG", "RBP(max_rel=2,p=0.8)")]
    assert two["map", "all"] == two["AP(rel=2)", "all"] == f"{(1 / 4 + 0) / 2:.4f}"
    assert [one[name, "all"] for name in ("ndcg", "AP@2")] == [two[name, "all"] for name in ("ndcg", "AP@2")]


def test_m_cuts_the_lists_and_j_takes_out_what_is_not_judged(files: tuple[Path, Path]) -> None:
    asked = ("-q", "-m", "num_ret", "-m", "relstring", "-m", "recip_rank", *files)

    cut, judged, both = printed("-M2", *asked), printed("-J", *asked), printed("-JM2", *asked)

    assert [cut["num_ret", topic] for topic in ("9", "10", "all")] == ["2", "2", "4"]
    assert [cut["relstring", topic] for topic in ("9", "10")] == ["'-1'", "'.1'"]
    assert [judged["relstring", topic] for topic in ("9", "10")] == ["'102'", "'1'"]
    assert judged["recip_rank", "all"] == "1.0000"
    assert [both["relstring", topic] for topic in ("9", "10")] == ["'1'", "'1'"]


MORE_TOPICS = QRELS + "8 0 d1 1\n7 0 d1 0\n"


def test_topic_without_a_document_is_an_error_with_the_code_of_trec_eval_10(tmp_path: Path) -> None:
    done = rankeval("trec", *written(tmp_path, MORE_TOPICS, RUN))

    assert (done.code, done.out) == (4, "")
    done.assert_readable()
    assert "found no document for topic '7', nor for 1 more; expected" in done.message
    assert "give -c to count missing topics as 0" in done.message


def test_with_c_every_topic_of_the_judgements_counts(tmp_path: Path) -> None:
    paths = written(tmp_path, MORE_TOPICS, RUN)

    found = printed("-cq", *ASKED, *paths)

    assert [found["map", topic] for topic in ("10", "7", "8", "9", "all")] == [
        "0.5000",
        "0.0000",
        "0.0000",
        "0.5000",
        "0.2500",
    ]
    assert [found["relstring", topic] for topic in ("7", "8")] == ["''", "''"]
    assert [found[name, "all"] for name in ("num_q", "num_ret", "num_rel")] == ["4", "6", "4"]
    assert found["gm_map", "all"] == f"{(0.5 * 1e-5 * 1e-5 * 0.5) ** (1 / 4):.4f}"


def test_version_9_leaves_missing_topics_out_and_tells_nothing_of_them_with_c(tmp_path: Path) -> None:
    paths = written(tmp_path, MORE_TOPICS, RUN)

    assert rankeval("trec", "--trec-eval", "9", "-q", *ASKED, *paths).out == LINES
    found = printed("--trec-eval", "9", "-cq", *ASKED, *paths)
    assert {topic for _, topic in found} == {"9", "10", "all"}
    assert (found["num_q", "all"], found["map", "all"]) == ("4", "0.2500")


def test_files_without_a_topic_in_common_are_an_error(files: tuple[Path, Path]) -> None:
    done = rankeval("trec", *files[::-1])

    assert done.code == 4
    files[1].write_text("1 Q0 d1 1 1 run\n", encoding="utf-8")
    for version in ("9", "10"):
        done = rankeval("trec", "--trec-eval", version, *files)
        assert done.code == 4
        assert "found no topic of the judgements; expected at least one; are the files swapped?" in done.message


def test_own_item_leaves_the_topic_out_of_its_list_or_of_both_files(tmp_path: Path) -> None:
    qrels, run = written(tmp_path, "q 0 q 1\nq 0 b 1\nr 0 b 1\n", "q Q0 q 1 3 x\nq Q0 b 2 2 x\nr Q0 r 1 1 x\n")
    for own_item, recall in (("keep", "1.0000"), ("drop", "0.5000"), ("drop_both", "1.0000")):
        done = rankeval("trec", "-q", "-c", "-m", "recall.5", "--own-item", own_item, qrels, run)
        assert [line.split()[1:] for line in done.out.splitlines()[:2]] == [["q", recall], ["r", "0.0000"]]
    done = rankeval("trec", "--own-item", "drop", qrels, run)
    assert done.code == 4
    assert "found no document but itself for topic 'r'; expected some for every topic" in done.message
    done = rankeval("trec", "--own-item", "dorp", qrels, run)
    assert done.code == 2
    assert "'dorp' is not one of 'keep', 'drop', 'drop_both'" in " ".join(done.err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        (RUN, QRELS, "qrels.txt, line 1: found a run at qrels.txt; expected judgements, lines of the form 'topic iter"),
        (QRELS, "\n# c\n9 0 d1 1\n", "run.txt, line 3: found judgements at run.txt; expected a run, lines of the form"),
        ("9 0 d1 1\n9 0 d2\n", RUN, "qrels.txt, line 2: found 3 fields; expected 4: 'topic iteration document grade'"),
        ("9 0 d1 1 x\n", RUN, "qrels.txt, line 1: found 5 fields; expected 4"),
        ("\n# c\n9 0 d1 0.5\n", RUN, "qrels.txt, line 3: found '0.5'; expected a whole number as grade"),
        (
            "9 0 d1 1\n9 0 d2 0\n9 0 d1 2\n",
            RUN,
            "qrels.txt, line 3: found document 'd1' of topic '9' again, after line 1",
        ),
        ("", RUN, "qrels.txt: found Empty CSV file; expected UTF-8 text, a row each line"),
        ("\n\n# nothing\n", RUN, "qrels.txt: found no line with content"),
        (
            "9 0 d1 1\n9 0 d2 " + "9" * 309 + "\n",
            RUN,
            f"qrels.txt, line 2: found '{'9' * 40}'... (309 characters); expected",
        ),
        ("9 0 d1 -" + "9" * 309, RUN, f"(310 characters); expected a whole number from {-(2**53)} to {2**53} as grade"),
        (
            f"9 0 d1 {2**53}\n9 0 d2 {2**53 + 2}",
            RUN,
            f"qrels.txt, line 2: found '{2**53 + 2}'; expected a whole number",
        ),
        (
            QRELS,
            "9 Q0 d1 1 inf r\n9 Q0 d2 1 1e309 r\n",
            "run.txt, line 2: found '1e309'; expected a score that a double",
        ),
        (
            QRELS,
            "9 Q0 d1 1 -1e999 r\n",
            "run.txt, line 1: found '-1e999'; expected a score that a double can hold, or inf",
        ),
        (QRELS, "9 Q0 d1 1 1\n", "run.txt, line 1: found 5 fields; expected 6: 'topic Q0 document rank score run'"),
        (QRELS, "9 Q0 d1 1 nan r\n", "run.txt, line 1: found 'nan'; expected a number as score"),
        (QRELS, RUN + "9 Q0 d9 9 9 r\n" * 2, "run.txt, line 9: found document 'd9' of topic '9' again, after line 4"),
        (QRELS, "9 Q0 d1 1 x r\n" * 7, "run.txt, line 5: found 'x'; expected a number as score - "),
        (QRELS, "9 Q0 d1 1 x r\n" * 7, "run.txt: found 2 more such lines; expected none"),
    ],
)
def test_what_cannot_be_read_is_reported_with_file_and_line(tmp_path: Path, qrels: str, run: str, message: str) -> None:
    done = rankeval("trec", *written(tmp_path, qrels, run))

    assert (done.code, done.out) == (4, "")
    done.assert_readable()
    assert message in done.message


def test_file_that_is_not_text_or_not_there_is_an_error(tmp_path: Path, files: tuple[Path, Path]) -> None:
    (tmp_path / "binary").write_bytes(b"9 0 d\xff 1\n")
    (tmp_path / "broken.gz").write_bytes(b"9 0 d 1\n")
    for name, found in (("binary", "UTF"), ("broken.gz", "gz"), ("none", "no such file"), (".", "a folder")):
        done = rankeval("trec", tmp_path / name, files[1])
        assert done.code == 4
        done.assert_readable()
        assert found in done.message


def test_large_file_of_another_kind_is_refused_in_seconds_for_its_first_lines(
    tmp_path: Path, files: tuple[Path, Path]
) -> None:
    n_bytes = 300_000_000
    with (tmp_path / "zeros").open("wb") as file:
        file.truncate(n_bytes)
    line = b"2026-01-01T00:00:00 INFO this is the log of a server\n"
    (tmp_path / "server.log").write_bytes(line * (n_bytes // len(line)))
    (tmp_path / "noise").write_bytes(os.urandom(1 << 20) * 50)
    os.mkfifo(tmp_path / "pipe")
    more = "server.log: found 9,995 more such lines among the first 10,000; expected none"
    for name, *found in (
        ("zeros", "found a line of more than 1 MB, as in a file of another kind; expected UTF-8 text, a row each line"),
        ("server.log", "server.log, line 1: found 'the'; expected a number as score", more),
        ("noise", "expected UTF-8 text, a row each line"),
        ("pipe", "found a folder, a pipe or a device; expected a file of TREC's judgements or of a run"),
    ):
        started = time.monotonic()
        done = rankeval("trec", files[0], tmp_path / name)
        assert (done.code, done.out) == (4, "")
        done.assert_readable()
        assert [text for text in found if text not in done.message] == []
        assert time.monotonic() - started < SECONDS_FOR_300_MB


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("mpa", "found unknown measure 'mpa'; expected one of trec_eval's (runid, num_q, "),
        ("ndgc_cut.5", "did you mean 'ndcg_cut'?"),
        ("P.5,x", "found parameters '5,x'; expected whole numbers between commas"),
        ("P.0", "found cutoff '0'; expected a whole number from 1 to 10000"),
        ("iprec_at_recall.2", "expected recall as a number from 0 to 1"),
        ("map.5", "found parameters '5'; expected none for map; -m map"),
        ("ndcg.1=3,2=9", "expected none for ndcg; -m 'nDCG(gains={1:3,2:9})'"),
        ("rbp", "ours is -m 'RBP(p=0.9)'"),
        ("yaap", "ours is -m map"),
        ("nDCG(gian='binary')", "found unknown option 'gian'"),
    ],
)
def test_unknown_measure_is_refused_before_a_file_is_read(tmp_path: Path, asked: str, message: str) -> None:
    done = rankeval("trec", "-m", asked, "-m", "also wrong", tmp_path / "none", tmp_path / "none")

    assert done.code == 2
    done.assert_readable()
    assert message in done.message
    assert "'also wrong'" in done.message


def test_greatest_grade_is_measured(tmp_path: Path) -> None:
    """The document of grade 2**53 is at rank 2, after one without a judgement."""
    found = printed("-m", "ndcg", "-m", "DCG", *written(tmp_path, f"9 0 d2 {2**53}\n", RUN))

    assert found["ndcg", "all"] == f"{1 / math.log2(3):6.4f}"
    assert float(found["DCG", "all"]) == pytest.approx(2**53 / math.log2(3), rel=1e-12)


@pytest.mark.parametrize("score", ["inf", "-Infinity", "1e300"])
@pytest.mark.parametrize("measure", ["RMSE", "MSE", "MAE"])
def test_rating_that_no_error_can_be_taken_of_is_refused(tmp_path: Path, measure: str, score: str) -> None:
    done = rankeval("trec", "-m", measure, *written(tmp_path, "9 0 d1 1\n", f"9 Q0 d1 1 {score} r\n"))

    assert (done.code, done.out) == (3, "")
    done.assert_readable()
    assert "expected predicted ratings within 1e+150 of the true ones" in done.message


def test_rank_counts_for_nothing_whatever_it_is(tmp_path: Path) -> None:
    ranks = iter(["0", "-1", "9" * 400, "nan", "x", "1e999", "1"])
    lines = [line.split(" ", 4) for line in RUN.splitlines() if line]
    run = "\n".join(" ".join([*line[:3], next(ranks), *line[4:]]) for line in lines)

    assert rankeval("trec", "-q", *ASKED, *written(tmp_path, QRELS, run)).out == LINES


@pytest.mark.parametrize("asked", ["unj", "unj.5", "unj_5", "rbp", "rbp_resid.0.5"])
def test_measure_that_is_new_in_version_10_is_refused_under_9(files: tuple[Path, Path], asked: str) -> None:
    done = rankeval("trec", "--trec-eval", "9", "-m", asked, *files)

    assert (done.code, done.out) == (2, "")
    done.assert_readable()
    name = asked.partition(".")[0].removesuffix("_5")
    assert f"found {name}, which is new in trec_eval 10; expected one of trec_eval 9" in done.message


def test_all_trec_has_the_measures_of_its_version(files: tuple[Path, Path]) -> None:
    of_9, of_10 = (printed("--trec-eval", version, "-m", "all_trec", *files) for version in ("9", "10"))

    assert [name for name in of_10 if name not in of_9] == [(f"unj_{k}", "all") for k in (5, 10, 20)]
    assert [name for name in of_9 if name not in of_10] == []
    assert printed("--trec-eval", "9", "-m", "unj@5", *files)["unj@5", "all"] == of_10["unj_5", "all"]


def test_grade_above_the_scale_of_a_measure_is_an_error(files: tuple[Path, Path]) -> None:
    done = rankeval("trec", "-m", "ERR(max_rel=1)", *files)

    assert done.code == 3
    done.assert_readable()


@pytest.mark.parametrize("arguments", [["-l", "0"], ["-M", "0"], ["--trec-eval", "8"]])
def test_number_out_of_range_is_refused(files: tuple[Path, Path], arguments: list[str]) -> None:
    assert rankeval("trec", *arguments, *files).code == 2


def test_it_imports_neither_spark_nor_pandas(files: tuple[Path, Path]) -> None:
    arguments = ["trec", *map(str, files)]
    program = f"""
import sys
from rankeval_spark.cli import main
try:
    main({arguments!r})
except SystemExit as ended:
    print("imported:", sorted({{"pyspark", "pandas", "scipy"}} & set(sys.modules)), ended.code)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout.splitlines()[-1] == "imported: [] 0"


@pytest.mark.parametrize("weight", ["-1", "0", "inf"])
def test_a_weight_of_set_f_is_above_0(files: tuple[Path, Path], weight: str) -> None:
    done = rankeval("trec", "-m", f"set_F.{weight}", *files)
    assert done.code == 2
    assert f"found set_F.{weight}; expected a weight above 0" in done.message
