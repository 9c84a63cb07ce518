"""Scores of run files by the official protocol, as mathamr evaluate prints them.

scores, note = score_files(Path("run.tsv"), [Path("qrel_task1_2020.tsv")], task=1)
scores   # {'ndcg_prime': 0.3446, 'map_prime': 0.1393, 'p_prime_10': 0.1623, 'bpref': 0.1261, 'topics': 77}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from graphs.corpus.arqmath.rekeying import rekey
from graphs.corpus.corpus import open_corpus
from graphs.corpus.post import Judgment, Post
from graphs.errors import EvaluationError, faults_as
from mathamr.evaluation import metrics
from mathamr.evaluation.metrics import Regime, judged_results
from mathamr.evaluation.runs import Qrels, Run, Task, qrels_of, read_qrels, read_run, read_visual_ids, repeated_lines
from mathamr.ranking.judged import year_of

UNJUDGED = (
    "no result is judged: the judgments may have other ids than the results (Task 1 is judged by post id, Task 2 by "
    "visual id or formula id)"
)
PRINTED = ("ndcg_prime", "map_prime", "p_prime_10", "bpref")


def score_files(
    run_file: Path,
    qrels_files: Sequence[Path],
    *,
    task: Task,
    regime: Regime = "full",
    searched: Path | None = None,
    visual_ids: Path | None = None,
    relevant_grade: int | None = None,
) -> tuple[dict[str, float], str]:
    """Read a run and its judgments; return its scores with the number of topics, and notes on the judgments.

    Args:
        regime: what was indexed.
        searched: in the regime mini, folder of the collection or file of ids; None: visual ids of ``visual_ids``.
        visual_ids: in Task 2, formula TSV or folder of them.
        relevant_grade: lowest relevant grade; None: 2, or 1 where no grade is above 1.

    Raises:
        EvaluationError: a file that cannot be read, with its line.
    """
    qrels = read_qrels(*qrels_files)
    run = read_run(run_file, task=task)
    mini = regime == "mini"
    ids = None
    if visual_ids is not None:
        # The regime mini asks for all formulas of the collection, the others for those of run and judgments.
        ids = read_visual_ids(visual_ids, None if mini else formulas_of(run, qrels))
    collection = None
    if searched is not None:
        collection = searched_ids(searched, task)
    elif mini and ids is not None:
        collection = set(ids.values())
    qrels, ids_note = in_ids_of(run, qrels, ids)
    relevant, note = metrics.relevant_grade(judgments_of(qrels), relevant_grade)
    result = metrics.evaluate(run, qrels, collection=collection, visual_ids=ids, relevant=relevant)
    notes = [note, repeated_lines(run), ids_note]
    values = {name: result.aggregate[name] for name in PRINTED} | {"topics": result.topics}
    return values, "\n".join(filter(None, notes))


def formulas_of(run: Run, qrels: Qrels) -> set[str]:
    """Return the ids whose visual ids a run of Task 2 is scored with."""
    return {hit.doc_id for hits in run.rankings.values() for hit in hits}.union(*qrels.values())


def in_ids_of(run: Run, qrels: Qrels, visual_ids: Mapping[str, str] | None) -> tuple[Qrels, str]:
    """Return the judgments by visual id in Task 2, and a note on converted ones and on years without a judged result.

    ARQMath published the judgments of one year by formula id. Each year has the kind of ids that judges more results.

    >>> from mathamr.evaluation.runs import Hit
    >>> run = Run("me", {"B.1": [Hit("7", 2.0, "a1"), Hit("8", 1.0, "a1")]}, task=2)
    >>> print(*in_ids_of(run, {"B.1": {"7": 3, "9": 2}}, {"7": "v", "8": "w"}))
    {'B.1': {'v': 3}} judgments of 2020 by formula id are converted to visual ids: 2; 1 of unknown formulas left out

    Args:
        visual_ids: visual ids of the formulas in run and judgments; None in Task 1.
    """
    years: dict[int | None, Qrels] = {}
    for topic, docs in qrels.items():
        years.setdefault(year_of(topic), {})[topic] = docs
    read: Qrels = {}
    notes: list[str] = []
    for year, judged in years.items():
        of_year = f" of {year}" if year else ""
        count = judged_results(run, judged, visual_ids)
        if visual_ids is not None:
            rekeyed, counts = rekey(judgments_of(judged), visual_ids)
            converted = qrels_of(rekeyed)
            if (converted_count := judged_results(run, converted, visual_ids)) > count:
                left_out = f"; {counts.unknown:,} of unknown formulas left out" if counts.unknown else ""
                notes.append(
                    f"judgments{of_year} by formula id are converted to visual ids: {counts.judgments:,}{left_out}"
                )
                judged, count = converted, converted_count
        if not count and not judged.keys().isdisjoint(run.rankings):
            notes.append(UNJUDGED.replace("no result", f"no result{of_year}", 1))
        read |= judged
    return read, "\n".join(notes)


def judgments_of(qrels: Qrels) -> Iterator[Judgment]:
    """Yield the judgments of a table."""
    return (Judgment(topic, doc, grade) for topic, docs in qrels.items() for doc, grade in docs.items())


def searched_ids(path: Path, task: Task) -> set[str]:
    """Return the ids of the posts in a collection's folder, or the ids that a file lists.

    Raises:
        EvaluationError: a folder for Task 2, a file that cannot be read, or a line with more than an id.
    """
    if path.is_dir():
        if task == 2:
            raise EvaluationError("a folder has posts; Task 2 takes a file of visual ids, or none", path=path)
        name = "beir" if any(path.glob("corpus.jsonl*")) else "jsonl" if any(path.glob("*.jsonl*")) else "arqmath"
        return {post.post_id for post in open_corpus(name, path).posts() if isinstance(post, Post)}
    with faults_as(EvaluationError, "cannot be read as a list of ids: {}", path):
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    for number, line in enumerate(lines, 1):
        if len(line.split()) > 1:
            message = "has more than one word; list one id on each line, or name the folder of the collection"
            raise EvaluationError(message, path=path, line=number)
    return {line.strip() for line in lines if line.strip()}
