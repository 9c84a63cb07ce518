"""Scores of run files by the official protocol, as mathamr evaluate prints them.

scored = score_files(Path("run.tsv"), [Path("qrel_task1_2020.tsv")], ScoreSettings(task=1))
scored.values   # {'ndcg_prime': 0.3446, 'map_prime': 0.1393, 'p_prime_10': 0.1623, 'bpref': 0.1261, 'topics': 77}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphs.corpus.corpus import open_corpus
from graphs.corpus.post import Judgment, Post
from graphs.errors import EvaluationError
from mathamr.evaluation.metrics import Regime, evaluate, judged_results, relevant_grade
from mathamr.evaluation.runs import Task, read_qrels, read_run, read_visual_ids, repeated_lines

UNJUDGED = (
    "no result is judged: the judgments may have other ids than the results (Task 1 is judged by post id, Task 2 by "
    "visual id, in files *_visual_id.tsv)"
)
PRINTED = ("ndcg_prime", "map_prime", "p_prime_10", "bpref")


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """Settings for scoring a run.

    Args:
        task: task of the run.
        regime: what was indexed.
        searched: in the regime mini, folder of the collection or file of ids; None: visual ids of ``visual_ids``.
        visual_ids: in Task 2, formula TSV or folder of them.
        relevant_grade: lowest relevant grade; None: 2, or 1 where no grade is above 1.
    """

    task: Task
    regime: Regime = "full"
    searched: Path | None = None
    visual_ids: Path | None = None
    relevant_grade: int | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores with the number of topics, and notes, e.g. where no result is judged."""

    values: Mapping[str, float]
    note: str


def score_files(run_file: Path, qrels_files: Sequence[Path], settings: ScoreSettings) -> Scored:
    """Read a run and its judgments, and score it.

    Raises:
        EvaluationError: a file that cannot be read, with its line.
    """
    qrels = read_qrels(*qrels_files)
    run = read_run(run_file, task=settings.task)
    mini = settings.regime == "mini"
    visual_ids = None
    if settings.visual_ids is not None:
        # The regime mini asks for all formulas of the collection, the others for those of the run.
        wanted = None if mini else {hit.doc_id for hits in run.rankings.values() for hit in hits}
        visual_ids = read_visual_ids(settings.visual_ids, wanted)
    searched = None
    if settings.searched is not None:
        searched = searched_ids(settings.searched, settings.task)
    elif mini and visual_ids is not None:
        searched = set(visual_ids.values())
    judgments = (Judgment(topic, doc, grade) for topic, docs in qrels.items() for doc, grade in docs.items())
    relevant, note = relevant_grade(judgments, settings.relevant_grade)
    result = evaluate(run, qrels, regime=settings.regime, collection=searched, visual_ids=visual_ids, relevant=relevant)
    notes = [note, repeated_lines(run), "" if judged_results(run, qrels, visual_ids) else UNJUDGED]
    values = {name: result.aggregate[name] for name in PRINTED} | {"topics": result.topics}
    return Scored(values, "\n".join(filter(None, notes)))


def searched_ids(path: Path, task: Task) -> set[str]:
    """Return the ids of the posts in a collection's folder, or the ids that a file lists.

    Raises:
        EvaluationError: a folder for Task 2, or a file that cannot be read.
    """
    if path.is_dir():
        if task == 2:
            raise EvaluationError("a folder has posts; Task 2 takes a file of visual ids, or none", path=path)
        name = "beir" if any(path.glob("corpus.jsonl*")) else "jsonl" if any(path.glob("*.jsonl*")) else "arqmath"
        return {post.post_id for post in open_corpus(name, path).posts() if isinstance(post, Post)}
    try:
        return set(path.read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"cannot be read as a list of ids: {error}", path=path) from error
