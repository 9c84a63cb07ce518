"""Text: posts as text with LaTeX between dollars -> a text encoder -> one vector a post, or one a token.

The encoder is taken as it is, or fine-tuned on the pairs that the graph track learns from, with the same questions held
out (where every post has a graph); of a collection of pairs, whole groups of pairs are held out. Vectors of posts are
kept beside the model by :mod:`mathamr.stages.vectors` and searched as those of graphs are. In the folder of a model

    best/encoder.json             what the vectors depend on: the encoder, its weights, its length
    best/                         the fine-tuned encoder, as sentence-transformers writes it
    encoded/, tokens/encoded/     vectors of texts; and of tokens, for late interaction
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphs.corpus.corpus import Corpus
from graphs.corpus.leaks import PairsApart
from graphs.corpus.pair_sets.pair_collection import PairCollection
from graphs.corpus.post import Pair, PlaceholderText, Post
from graphs.corpus.text.latex_text import as_text
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, MissingEncoderError
from graphs.processes import batched
from graphs.shared_files import key
from graphs.stores.posts import PostTexts
from mathamr.analysis.collapse import KINDS
from mathamr.evaluation.efficiency import reset_peak_memory
from mathamr.model.encoding import device_of
from mathamr.negatives.text import Mining
from mathamr.search.searchable import Searchable
from mathamr.stages.collection import ParsedCollection
from mathamr.stages.console import Console
from mathamr.stages.leak_control import CollectionPairs
from mathamr.stages.learning.passages import text_lines
from mathamr.stages.learning.reporting import training_stage
from mathamr.stages.learning.text_encoder import pretrained
from mathamr.stages.needed import NeededPosts, extent_of, needed_posts
from mathamr.stages.retrieval.searching import check_search, index_posts, search_posts
from mathamr.stages.text_vectors import TextsToEncode, encode_texts
from mathamr.stages.topic_sets import EmbeddingSpace, Encoded, Indexed, Log, Retrieved, SelectPosts, TopicSet, Trained
from mathamr.stages.vectors import EncodedPosts
from mathamr.systems.registry import system
from mathamr.systems.searchable.kept import FinishedSearch, KeptSearch
from mathamr.systems.searchable.text import encode_query, keep_encoder
from mathamr.systems.searchable.vectors import keep_vectors, open_vectors
from mathamr.systems.settings.trained import TextSettings
from mathamr.systems.system import System
from mathamr.text import finetuning
from mathamr.text.encoder import Opening, Side, TextEncoder, open_encoder
from mathamr.text.linearize import VERSION, linearized
from mathamr.text.pairs import PairFile, sampled, write_pairs
from mathamr.text.sources.pair_sources import of_answers
from mathamr.text.training.adapting import fingerprint, limit_length
from mathamr.text.training.encoder_files import check_files, read_record, write_record
from mathamr.text.training.tiny import make_tiny
from mathamr.training.distributed import arithmetic
from mathamr.training.pairs import further_pairs
from mathamr.training.processes import number_of

_TINY_TEXTS = 20_000
_AT_ONCE = 1_000  # texts of posts.db
Written = Callable[[PlaceholderText], str]


@system("text")
class TextSystem(System[TextSettings]):
    """Search by the vectors of a text encoder."""

    tasks = frozenset({1})  # it has vectors of whole posts, and none of formulas
    reads = frozenset({"answer", "question", "both"})

    def __init__(self, corpus: Corpus, shared: Path, console: Console) -> None:
        super().__init__(corpus, shared, console)
        self._texts = shared / "posts.db"
        self._tiny = shared / "tiny-encoder"
        self._collection_pairs = CollectionPairs(corpus, self.post_files, console)
        self._checked: set[tuple[str, int | None, Opening]] = set()
        self._missing: dict[tuple[str, Opening], MissingEncoderError] = {}

    # -- before anything runs ----------------------------------------------------------------------------------------

    def check(self, settings: TextSettings, topic_sets: Sequence[TopicSet]) -> None:
        """Check settings, and that there is such an encoder."""
        self._collection_pairs.topic_sets = topic_sets
        text, training = settings.text, settings.train
        check_search(settings)
        if settings.is_trained and isinstance(self.corpus, PairCollection):
            self.corpus.pair_files(training.positives)
        if settings.is_trained and training.collections:
            raise ConfigError(
                f"track=text learns from the pairs of the collection alone, not from {', '.join(training.collections)};"
                " use train.pairs=null train.pretrain_pairs=null, or text.epochs=0"
            )
        if text.encoder != "tiny" and (text.encoder, text.max_length, text.opening) not in self._checked:
            encoder = self._look_for(text.encoder, text.opening)
            limit_length(encoder, text.max_length)
            if encoder.notice:
                self.console.say(f"  {encoder.notice}")
            self._checked.add((text.encoder, text.max_length, text.opening))
        if text.epochs and text.guide is not None:
            self._look_for(text.guide, Opening())

    def _look_for(self, name: str, opening: Opening) -> TextEncoder:
        """Open an encoder; a missing one is looked for once, since the hub may answer slowly."""
        if error := self._missing.get((name, opening)):
            raise error
        try:
            return open_encoder(name, device="cpu", opening=opening)
        except MissingEncoderError as error:
            self._missing[name, opening] = error
            raise

    # -- what jobs share ---------------------------------------------------------------------------------------------

    def prepare(self, settings: TextSettings, topic_sets: Sequence[TopicSet]) -> None:
        """Make posts.db, and the encoder ``tiny`` where it is named; no graphs."""
        self.post_files.read(texts=extent_of(settings.data) == "all")  # once, for pairs and for texts
        collection = ParsedCollection(self.corpus, self.shared, self.console, self._needed(settings, topic_sets))
        with collection.alone():
            collection.texts()
            done = self._tiny.with_suffix(".done")
            if settings.text.encoder == "tiny" and not done.exists():
                shutil.rmtree(self._tiny, ignore_errors=True)
                make_tiny(islice(self._all_texts(as_text), _TINY_TEXTS), self._tiny)
                done.touch()

    def _needed(self, settings: TextSettings, topic_sets: Sequence[TopicSet]) -> NeededPosts | None:
        """Return the posts whose texts are read; None: all, which pretraining and the tiny encoder learn from."""
        text = settings.text
        if text.pretraining_epochs or text.encoder == "tiny" or isinstance(self.corpus, PairCollection):
            return None
        learned = self._collection_pairs.learned(settings.train) if settings.is_trained else frozenset[str]()
        return needed_posts(settings, self.corpus, topic_sets, learned, self.shared, self.console)

    def pairs(self, settings: TextSettings) -> Mapping[str, PairsApart]:
        """Return the training pairs, and those left out since their questions are topics."""
        return {"": self._collection_pairs(settings.train)} if settings.is_trained else {}

    def source(self, settings: TextSettings) -> str:
        """Return the collection, and the training pairs that are left out of it for the topics."""
        source = self.corpus.fingerprints().graphs[:16]
        if not settings.text.epochs:
            return source
        left_out = self._collection_pairs(settings.train).left_out
        return f"{source}+{hashlib.sha256(repr(left_out).encode()).hexdigest()[:8]}" if left_out else source

    def _read(self, post_ids: Sequence[str], written: Written) -> list[str]:
        """Return the texts of posts, in order."""
        found = self.texts(post_ids)
        return [written(found[post_id].text) for post_id in post_ids]

    def _all_texts(self, written: Written) -> Iterator[str]:
        """Yield the texts of all posts, read as they are needed."""
        with PostTexts(self.posts_db) as texts:
            post_ids = texts.post_ids()
        for some in batched(post_ids, _AT_ONCE):
            yield from self._read(some, written)

    def _open(self, settings: TextSettings, trained: Path | None = None) -> TextEncoder:
        """Open the encoder that a job begins with, or the one that it has ``trained``."""
        name = str(self._tiny) if settings.text.encoder == "tiny" else settings.text.encoder
        if trained is not None:
            check_files(trained)
            name = str(trained)
        encoder = open_encoder(name, device=device_of(settings.train.device), opening=settings.text.opening)
        limit_length(encoder, settings.text.max_length)
        return encoder

    # -- the model ---------------------------------------------------------------------------------------------------

    def train(self, settings: TextSettings, folder: Path, log: Log) -> Trained:
        """Pretrain the encoder on the collection's texts and fine-tune it on its pairs, or take it as it is."""
        encoder, best, text = self._open(settings), folder / "best", settings.text
        if settings.is_trained:
            costs: Mapping[str, float] = {}
            if text.pretraining_epochs:
                encoder, costs = self._pretrained(settings, encoder)
            reset_peak_memory()
            pairs, held_out = self._pairs(settings, folder)
            with training_stage("fine-tuning", self.console, log) as report:
                result = finetuning.finetune(
                    text,
                    encoder,
                    pairs,
                    validation=held_out,
                    out=folder,
                    seed=settings.seed,
                    log=report,
                    mining=Mining,
                    progress=report.progress,
                )
            trained = Trained(best, {**costs, **result.costs})
        else:
            best.mkdir(exist_ok=True)
            trained = Trained(best, {"parameters": encoder.parameters})
        parts = [fingerprint(encoder), str(text.max_length)]
        parts += [f"linearized{VERSION}"] if text.linearize else []
        parts += ["bf16"] if _precision(settings) == "bf16" else []
        parts += [key(asdict(text.opening))] if text.opening != Opening() else []
        model_hash = "-".join(parts)
        write_record(best, {"encoder": text.encoder, "identity": model_hash})
        return trained

    def _pretrained(self, settings: TextSettings, encoder: TextEncoder) -> tuple[TextEncoder, Mapping[str, float]]:
        """Return the encoder after pretraining, and the costs; only losses of fine-tuning are in the log."""
        written, given = _written(settings), settings.data.texts
        folder, costs = pretrained(
            settings.text,
            encoder,
            lambda: self._all_texts(written) if given is None else map(_rewritten(written), text_lines(Path(given))),
            self.shared / "pretrained",
            seed=settings.seed,
            console=self.console,
            texts_hash=settings.texts_hash,
        )
        return self._open(settings, folder), costs

    def _pairs(self, settings: TextSettings, folder: Path) -> tuple[PairFile, PairFile | None]:
        """Return what is trained on, and what is held out; None: a part of the groups of the former."""
        written = _written(settings)
        if isinstance(self.corpus, PairCollection):
            leaking = frozenset(self._collection_pairs(settings.train).left_out)
            files = [PairFile(path) for path in self.corpus.pair_files(settings.train.positives)]
            pairs = sampled(files, settings.train.max_pairs, leaking, _rewritten(written))
            return write_pairs(folder / "pairs.jsonl", pairs), None
        with PostTexts(self.posts_db) as texts:  # the pairs of the graph track, if every text has a graph
            split = self._collection_pairs.split_of(settings.train, frozenset(texts.post_ids()))
            if (warning := split.warning()) is not None:
                self.console.once(f"  {warning}")

            def write(name: str, own_pairs: Sequence[Pair]) -> PairFile:
                known = further_pairs(own_pairs, self._collection_pairs(settings.train).kept)
                further = (replace(pair, learned=False) for pair in of_answers(known, texts, written))
                return write_pairs(folder / name, chain(of_answers(own_pairs, texts, written), further))

            return write("pairs.jsonl", split.train), write("validation.jsonl", split.validation)

    def best(self, folder: Path) -> Path | None:
        """Return the encoder of the lowest validation loss, or the record of the one that is taken as it is."""
        best = folder / "best"
        return best if (best / "encoder.json").exists() else None

    def tidy(self, folder: Path) -> None:
        """Remove what only training needs."""
        finetuning.tidy(folder)
        for name in ("pairs.jsonl", "validation.jsonl"):
            (folder / name).unlink(missing_ok=True)

    # -- retrieval ---------------------------------------------------------------------------------------------------

    def encode(self, settings: TextSettings, trained: Trained, topic_sets: Sequence[TopicSet]) -> Encoded:
        """Return vectors of posts and topics, from beside the model as far as they are there."""
        tokens = settings.text.late_interaction
        model_hash = read_record(trained.folder)["identity"]
        folder = trained.folder.parent / "tokens" if tokens else trained.folder.parent
        folder.mkdir(exist_ok=True)
        place, written = EncodedPosts(folder, model_hash), _written(settings)
        texts = {topic.post.post_id: written(extract(topic.post)) for q in topic_sets for topic in q.topics}
        place.forget_changed({name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()})
        posts: dict[str, Side] = {}
        topics: dict[str, Side] = {}
        for topic_set in topic_sets:
            sides: tuple[Side, Side] = ("document", "query") if topic_set.swapped else ("query", "document")
            topics |= {t.post.post_id: sides[0] for t in topic_set.topics if texts[t.post.post_id].strip()}
            posts |= dict.fromkeys(self._searched(topic_set), sides[1])
        if settings.thread.read == "both":
            self.threads(topic_sets)
            posts |= dict.fromkeys(self.joined_questions(settings, list(posts)).values(), "document")
        device = torch.device(device_of(settings.train.device))
        count = number_of(settings.train.processes, device.type) if _precision(settings) == "fp32" else 1  # no autocast
        devices = [f"cuda:{number}" for number in range(count)] if device.type == "cuda" else ["cpu"] * count
        with arithmetic(_precision(settings), device):
            encode_texts(
                place,
                lambda: self._open(settings, trained.folder if settings.is_trained else None),
                TextsToEncode(posts, lambda ids: self._read(ids, written)),
                TextsToEncode(topics, lambda ids: [texts[name] for name in ids]),
                self.console,
                tokens=tokens,
                devices=devices,
            )
        return Encoded(place, place.costs(len(posts)))

    def _searched(self, topic_set: TopicSet) -> list[str]:
        """Return the posts that have a text, of those that are searched."""
        with PostTexts(self.posts_db) as texts:
            posts = texts.post_ids(topic_set.kind)
        wanted = topic_set.indexed
        return posts if wanted is None else [post_id for post_id in posts if post_id in wanted]

    def index(self, settings: TextSettings, encoded: Encoded, topic_set: TopicSet, folder: Path) -> Indexed:
        """Index posts."""
        vectors: EncodedPosts = encoded.vectors
        post_ids = vectors.encoded(self._searched(topic_set))
        return index_posts(settings, vectors, post_ids, folder, self.joined_questions(settings, post_ids))

    def retrieve(self, settings: TextSettings, encoded: Encoded, indexed: Indexed, topic_set: TopicSet) -> Retrieved:
        """Search the index with the topics."""
        vectors: EncodedPosts = encoded.vectors
        topics = [topic for topic in topic_set.topics if vectors.encoded([topic.post.post_id])]
        topic_set.say_lost(self.console, topics, "have no text")
        return search_posts(settings, vectors, indexed, topics)

    def keep(self, job: FinishedSearch[TextSettings], folder: Path) -> Mapping[str, Any]:
        """Keep vectors of the posts, and the encoder."""
        settings, vectors = job.settings, job.encoded.vectors
        post_ids = vectors.encoded(self._searched(job.queries))
        record = keep_vectors(settings, vectors, post_ids, self.joined_questions(settings, post_ids), folder)
        own = self._tiny if settings.text.encoder == "tiny" else None
        own = job.trained.folder if settings.is_trained else own
        side: Side = "document" if job.queries.swapped else "query"
        return record | keep_encoder(settings, vectors.model_hash, own, _precision(settings), side, folder)

    @classmethod
    def open_kept(cls, kept: KeptSearch) -> Searchable:
        """Open the vectors of the posts, and the encoder."""
        return open_vectors(kept.record, kept.folder, encode_query(kept.record, kept.folder, kept.device))

    def embedding_space(
        self, settings: TextSettings, encoded: Encoded, topic_set: TopicSet, select: SelectPosts
    ) -> EmbeddingSpace | None:
        """Return the vectors of whole texts; None with late interaction, whose vectors are of tokens."""
        if settings.text.late_interaction:
            return None
        vectors: EncodedPosts = encoded.vectors
        topics = [topic for topic in topic_set.topics if vectors.encoded([topic.post.post_id])]
        posts = select(vectors.encoded(self._searched(topic_set)))
        document = KINDS.index("document")

        @cache  # opening reads all weights
        def open_encoder() -> TextEncoder:
            return self._open(settings, vectors.folder / "best" if settings.is_trained else None)

        def lengths(post_ids: Sequence[str]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
            return open_encoder().lengths(self._read(post_ids, _written(settings)), "document")

        def encode(texts: Sequence[str]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
            encoder = open_encoder()
            return encoder.encode(texts, "document"), encoder.lengths(texts, "document")[0]

        return EmbeddingSpace(
            topics=[topic.topic_id for topic in topics],
            queries=vectors.sets([topic.post.post_id for topic in topics]),
            query_kinds=np.full(len(topics), document),
            posts=posts,
            documents=vectors.sets(posts),
            document_kinds=np.full(len(posts), document),
            single_vector=settings.retrieval.strategy == "single_vector",
            lengths=lengths,
            encode=encode,
        )


def _written(settings: TextSettings) -> Written:
    """Return how a post's text is written for the encoder."""
    return (lambda text: as_text(linearized(text))) if settings.text.linearize else as_text


def _precision(settings: TextSettings) -> str:
    """Return the arithmetic of encoding: vectors of a trained encoder are always made in fp32."""
    return "fp32" if settings.is_trained else settings.text.precision


def _rewritten(written: Written) -> Callable[[str], str]:
    """Return a function that writes a text outside the collection as those of its posts."""
    return lambda text: written(extract(Post("", "answer", body=text, markup="text")))
