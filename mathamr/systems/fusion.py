"""The track of fusions: the rankings of other conditions of the experiment, of the same seed, made one.

Their jobs run first (:attr:`experiments.plan.Job.needs`), and what they left in ``outputs/EXP/jobs`` is read: run files
and costs. A query costs what all parts take one after the other, and the fusion itself; the index is all of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig

from graphs.errors import ConfigError, RetrievalError
from graphs.shared_files import read_json
from mathamr.evaluation.efficiency import Stopwatch
from mathamr.evaluation.result_names import column, file_name
from mathamr.evaluation.runs import Hit, Run, Task, read_run
from mathamr.retrieval.fusion import Rankings, interpolate, one_a_look, rankings_of, reciprocal_rank_fusion
from mathamr.retrieval.index import Ranking
from mathamr.stages.system import Encoded, Indexed, Question, Retrieved
from mathamr.systems.untrained import Untrained

HOW = ("rrf", "weighted")


class FusionTrack(Untrained):
    """See :class:`mathamr.stages.system.Track`."""

    def check(self, config: DictConfig, questions: Sequence[Question]) -> None:
        """How rankings are fused; which they are, the plan has checked."""
        how, weights, count = config.fusion.how, config.fusion.weights, len(config.fusion.of)
        if how not in HOW:
            raise ConfigError(f"fusion.how={how} is not one of {', '.join(HOW)}")
        if (how == "weighted") != (weights is not None):
            raise ConfigError(f"fusion.weights={weights} with fusion.how={how}; weighted needs weights, rrf takes none")
        try:
            _fused(config, [{}] * count)
        except RetrievalError as error:
            raise ConfigError(f"fusion: {error}") from error

    def prepare(self, config: DictConfig, questions: Sequence[Question]) -> None:
        """posts.db for examples, and formulas.db for the visual ids of Task 2."""
        self.prepare_texts(config, questions, formulas=any(question.task == 2 for question in questions))

    def index(self, config: DictConfig, encoded: Encoded, question: Question, folder: Path) -> Indexed:
        """Nothing is indexed again; the costs are the sums of the parts'."""
        results = [read_json(place / "result.json") or {} for place in _places(config)]
        columns = {name: column(question.asked, name) for name in _SUMMED}
        known = {name: [own[key] for own in results if key in own] for name, key in columns.items()}
        return Indexed(None, {name: sum(values) for name, values in known.items() if values})

    def retrieve(self, config: DictConfig, encoded: Encoded, indexed: Indexed, question: Question) -> Retrieved:
        """Fuse the rankings that the parts have left."""
        second = question.task == 2
        name, speed = file_name(question.asked, "run.tsv"), column(question.asked, "queries_per_second")
        places = _places(config)
        runs = [_run_of(place / name, question.task) for place in places]
        rankings: list[dict[str, Ranking]] = [rankings_of(run) for run in runs]
        visual_ids = self.visual_ids(config) if second else None
        with Stopwatch() as watch:
            if visual_ids is not None:
                rankings = one_a_look(rankings, visual_ids)
            fused = _fused(config, rankings)
        rates = [float((read_json(place / "result.json") or {}).get(speed, 0)) for place in places]
        costs = {}
        if all(rates):
            costs["queries_per_second"] = 1 / (sum(1 / rate for rate in rates) + watch.seconds / len(question.topics))
        if visual_ids is None:
            return Retrieved(fused, costs)
        post_of = {hit.doc_id: hit.post_id for run in runs for hits in run.rankings.values() for hit in hits}
        found = {topic: [Hit(own, score, post_of[own]) for own, score in ranking] for topic, ranking in fused.items()}
        return Retrieved(found, costs, visual_ids)


_SUMMED = ("index_bytes", "vectors", "formulas")


def _run_of(path: Path, task: Task) -> Run:
    """A part's run; one that found nothing for any topic is empty, which is not how a run file is cut short here."""
    return read_run(path, task=task) if path.stat().st_size else Run(path.parent.name, {}, task)


def _places(config: DictConfig) -> list[Path]:
    """The folders of the jobs that are fused."""
    jobs = Path(config.outputs) / config.experiment.name / "jobs"
    return [jobs / f"{part}-seed{config.train.seed}" for part in config.fusion.of]


def _fused(config: DictConfig, rankings: Sequence[Rankings]) -> dict[str, Ranking]:
    limit = config.retrieval.k
    if config.fusion.how == "weighted":
        return interpolate(rankings, list(config.fusion.weights), limit=limit)
    return reciprocal_rank_fusion(rankings, k=config.fusion.k, limit=limit)
