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
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from omegaconf import DictConfig

from graphs.corpus.corpus import Corpus, topics_may_be_posts
from graphs.corpus.pair_sets.pair_collection import PairCollection
from graphs.corpus.post import Pair, PlaceholderText, Post
from graphs.corpus.text.latex_text import as_text
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError
from graphs.shared_files import read_json, write_json
from graphs.stores.posts import PostTexts
from mathamr.analysis.collapse import KINDS
from mathamr.evaluation.efficiency import reset_peak_memory
from mathamr.maxsim import VectorSets
from mathamr.model import encoding_shards
from mathamr.negatives.text import Mining
from mathamr.stages.collection import ParsedCollection
from mathamr.stages.console import Console
from mathamr.stages.needed import NeededPosts, extent_of, needed_posts, posts_of
from mathamr.stages.own_pairs import own_pairs
from mathamr.stages.pretraining import pretrained
from mathamr.stages.searching import check_search, device_of, index_posts, say_lost, search_posts
from mathamr.stages.settings import IndexConfig, RetrievalConfig, settings
from mathamr.stages.topic_sets import Choose, Encoded, Indexed, Log, Question, Retrieved, Space, Trained
from mathamr.stages.vectors import EncodedPosts
from mathamr.systems.registry import system
from mathamr.systems.system import System
from mathamr.text import finetuning
from mathamr.text.config import TextConfig
from mathamr.text.encoder import SIDES, Side, TextEncoder, identity, make_tiny, open_encoder
from mathamr.text.linearize import linearized
from mathamr.text.pairs import PairFile, TextPair, write_pairs
from mathamr.text.sources.pair_sources import of_answers
from mathamr.text.training.adapting import fingerprint, limit_length
from mathamr.training.config import TrainConfig
from mathamr.training.pairs import PairSplit, sample_pairs, split_pairs

# Settings that the vectors of an encoder depend on that is not trained, and those that make the pairs of one that is.
_AS_IT_IS = ("encoder", "max_length", "linearize")
_PAIRS = ("positives", "least_score", "max_pairs", "validation_fraction", "seed")
_TINY_TEXTS = 20_000
_POSTS_A_SHARD = {False: 10_000, True: 1_000}  # by late interaction: a text has a hundred tokens
_AT_ONCE = 1_000  # texts of posts.db
Written = Callable[[PlaceholderText], str]
Kind = Literal["posts", "topics"]


@system("text")
class TextSystem(System):
    """Search by the vectors of a text encoder."""

    groups: ClassVar = {"text": TextConfig, "train": TrainConfig, "index": IndexConfig, "retrieval": RetrievalConfig}
    free: ClassVar = {"text": ("checkpoint_every",), "index": ("location", "keep")}
    tasks = frozenset({1})  # it has vectors of whole posts, and none of formulas

    def __init__(self, corpus: Corpus, shared: Path, console: Console) -> None:
        super().__init__(corpus, shared, console)
        self._texts = self._posts_db = shared / "posts.db"
        self._tiny = shared / "tiny-encoder"
        self._all_pairs: dict[tuple[str, int], tuple[list[Pair], list[Pair]]] = {}
        self._questions: Sequence[Question] = ()  # those that were checked
        self._opened: set[tuple[str, int | None]] = set()

    @classmethod
    def model_key_parts(cls, config: DictConfig) -> Mapping[str, Any]:
        """Return the settings of the encoder; if it is trained, the seed and what makes pairs as well."""
        text = cls.key_settings(config, "text")
        text["encoder"] = identity(text["encoder"])
        del text["late_interaction"]  # the search alone
        if _is_trained(config):
            return {"text": text, "train": {name: config.train[name] for name in _PAIRS}}
        return {"text": {name: text[name] for name in _AS_IT_IS if name in text}}

    @classmethod
    def result_key_parts(cls, config: DictConfig) -> Mapping[str, Any]:
        """Return the settings of the search."""
        search = {group: cls.key_settings(config, group) for group in ("index", "retrieval")}
        return {**search, "late_interaction": config.text.late_interaction}

    # -- before anything runs ----------------------------------------------------------------------------------------

    def check(self, config: DictConfig, questions: Sequence[Question]) -> None:
        """Settings, and whether there is such an encoder."""
        self._questions = questions
        text = settings(TextConfig, config.text, "text")
        training = settings(TrainConfig, config.train, "train")
        check_search(config)
        if _is_trained(config) and isinstance(self.corpus, PairCollection):
            self.corpus.pair_files(training.positives)
        if (text.epochs or text.pretraining_epochs) and training.collections:
            raise ConfigError(
                f"track=text learns from the pairs of the collection alone, not from {', '.join(training.collections)};"
                " use train.pairs=null train.pretrain_pairs=null, or text.epochs=0"
            )
        if text.encoder != "tiny" and (text.encoder, text.max_length) not in self._opened:
            limit_length(open_encoder(text.encoder, device="cpu"), text.max_length)
            self._opened.add((text.encoder, text.max_length))

    # -- what jobs share ---------------------------------------------------------------------------------------------

    def prepare(self, config: DictConfig, questions: Sequence[Question]) -> None:
        """posts.db; no graphs. And the encoder ``tiny``, where that is the one."""
        collection = ParsedCollection(self.corpus, self.shared, self.console, self._needed(config, questions))
        with collection.alone():
            collection.texts()
            done = self._tiny.with_suffix(".done")
            if config.text.encoder == "tiny" and not done.exists():
                shutil.rmtree(self._tiny, ignore_errors=True)
                make_tiny(islice(self._all_texts(as_text), _TINY_TEXTS), self._tiny)
                done.touch()

    def _needed(self, config: DictConfig, questions: Sequence[Question]) -> NeededPosts | None:
        """Return the posts whose texts are read; None: all, which pretraining and the tiny encoder learn from."""
        if config.text.pretraining_epochs or config.text.encoder == "tiny" or isinstance(self.corpus, PairCollection):
            return None
        learned = frozenset[str]()
        if _is_trained(config):
            training = settings(TrainConfig, config.train, "train")
            pairs, _ = self._apart(config)
            learned = posts_of(sample_pairs(pairs, posts_of(pairs), training.max_pairs))
        return needed_posts(config, self.corpus, questions, learned, self.shared, self.console)

    def source(self, config: DictConfig) -> str:
        """The collection, and the training pairs that are left out of it for the topics."""
        source = self.corpus.fingerprints().graphs[:16]
        if not config.text.epochs or isinstance(self.corpus, PairCollection) or not topics_may_be_posts(self.corpus):
            return source
        _, left_out = self._apart(config)
        return f"{source}+{hashlib.sha256(repr(left_out).encode()).hexdigest()[:8]}" if left_out else source

    def _read(self, post_ids: Sequence[str], written: Written) -> list[str]:
        """The texts of posts, in order."""
        found = self.texts(post_ids)
        return [written(found[post_id].text) for post_id in post_ids]

    def _all_texts(self, written: Written) -> Iterator[str]:
        """The texts of all posts, read as they are needed."""
        with PostTexts(self._posts_db) as texts:
            post_ids = texts.post_ids()
        for start in range(0, len(post_ids), _AT_ONCE):
            yield from self._read(post_ids[start : start + _AT_ONCE], written)

    def _open(self, config: DictConfig, trained: Path | None = None) -> TextEncoder:
        """The encoder that a configuration begins with, or the one that it has ``trained``."""
        name = str(self._tiny) if config.text.encoder == "tiny" else config.text.encoder
        encoder = open_encoder(name if trained is None else str(trained), device=device_of(config))
        limit_length(encoder, config.text.max_length)
        return encoder

    # -- the model ---------------------------------------------------------------------------------------------------

    def train(self, config: DictConfig, folder: Path, log: Log) -> Trained:
        """Pretrain the encoder on the collection's texts and fine-tune it on its pairs, or take it as it is."""
        encoder, best = self._open(config), folder / "best"
        if _is_trained(config):
            costs: Mapping[str, float] = {}
            if config.text.pretraining_epochs:
                encoder, costs = self._pretrained(config, encoder)
            result = self._finetune(config, encoder, folder, log)
            history = [{"kind": "epoch", **asdict(record)} for record in result.history]
            trained = Trained(best, {**costs, **result.costs}, history)
        else:
            best.mkdir(exist_ok=True)
            trained = Trained(best, {"parameters": encoder.parameters})
        model_hash = f"{fingerprint(encoder)}-{config.text.max_length}{'-linearized' if config.text.linearize else ''}"
        write_json(best / "encoder.json", {"encoder": config.text.encoder, "identity": model_hash})
        return trained

    def _pretrained(self, config: DictConfig, encoder: TextEncoder) -> tuple[TextEncoder, Mapping[str, float]]:
        """The encoder after pretraining, and the costs; its losses are not those of fine-tuning, and not in the log."""
        folder, costs = pretrained(
            settings(TextConfig, config.text, "text"),
            encoder,
            lambda: self._all_texts(_written(config)),
            self.shared / "pretrained",
            seed=config.train.seed,
            console=self.console,
        )
        return self._open(config, folder), costs

    def _finetune(self, config: DictConfig, encoder: TextEncoder, folder: Path, log: Log) -> finetuning.Finetuned:
        reset_peak_memory()
        pairs, validation = self._pairs(config, folder)
        with self.console.stage("fine-tuning", unit="steps") as advance:

            def told(record: dict[str, Any]) -> None:
                log(record)
                if record["kind"] == "start":
                    advance.expect(record["total_steps"])
                elif record["kind"] == "epoch":
                    self.console.say(
                        f"  epoch {record['epoch'] + 1}: loss {record['train_loss']:.3f}, validation loss "
                        f"{record['val_loss']:.3f}, MRR {record['val_mrr']:.3f}, {record['seconds']:.1f} s"
                    )

            return finetuning.finetune(
                settings(TextConfig, config.text, "text"),
                encoder,
                pairs,
                validation=validation,
                mining=Mining,
                out=folder,
                seed=config.train.seed,
                log=told,
                progress=advance,
            )

    def _pairs(self, config: DictConfig, folder: Path) -> tuple[PairFile, PairFile | None]:
        """What is trained on, and what is held out; None: a part of the groups of the former."""
        written = _written(config)
        if isinstance(self.corpus, PairCollection):
            return write_pairs(folder / "pairs.jsonl", self._own_pairs(self.corpus, config)), None
        split = self._split(config)
        with PostTexts(self._posts_db) as texts:
            pairs = write_pairs(folder / "pairs.jsonl", of_answers(split.train, texts, written))
            return pairs, write_pairs(folder / "validation.jsonl", of_answers(split.validation, texts, written))

    def _own_pairs(self, corpus: PairCollection, config: DictConfig) -> Iterator[TextPair]:
        """The pairs of a collection of pairs, with texts as those of its posts are read."""
        training, written = settings(TrainConfig, config.train, "train"), _written(config)
        files = [PairFile(path) for path in corpus.pair_files(training.positives)]
        known = [Pair(pair.query_id, pair.document_id) for file in files for pair in file]
        ids = {post_id for pair in known for post_id in (pair.question_id, pair.answer_id)}
        kept = set(sample_pairs(known, ids, training.max_pairs))
        for pair in (pair for file in files for pair in file):
            if Pair(pair.query_id, pair.document_id) in kept:
                texts = [Post("", "answer", body=text, markup="text") for text in (pair.query, pair.document)]
                query, document = (written(extract(text)) for text in texts)
                yield replace(pair, query=query, document=document)

    def _apart(self, config: DictConfig) -> tuple[list[Pair], list[Pair]]:
        """The training pairs of the collection, and those that are left out."""
        key = config.train.positives, config.train.least_score
        if key not in self._all_pairs:
            self.post_files.read(texts=extent_of(config.data) == "all")
            self._all_pairs[key] = own_pairs(self.corpus, self.post_files, *key, self._questions, self.console)
        return self._all_pairs[key]

    def _split(self, config: DictConfig) -> PairSplit:
        """The pairs of the graph track, were there a graph of every post that has a text."""
        training = settings(TrainConfig, config.train, "train")
        pairs, _ = self._apart(config)
        with PostTexts(self._posts_db) as texts:
            available = frozenset(texts.post_ids())
        sample = sample_pairs(pairs, available, training.max_pairs)
        return split_pairs(sample, available, validation_fraction=training.validation_fraction)

    def best(self, folder: Path) -> Path | None:
        """The encoder of the lowest validation loss, or the record of the one that is taken as it is."""
        best = folder / "best"
        return best if (best / "encoder.json").exists() else None

    def tidy(self, folder: Path) -> None:
        """Remove what only training needs."""
        finetuning.tidy(folder)
        for name in ("pairs.jsonl", "validation.jsonl"):
            (folder / name).unlink(missing_ok=True)

    # -- retrieval ---------------------------------------------------------------------------------------------------

    def encode(self, config: DictConfig, trained: Trained, questions: Sequence[Question]) -> Encoded:
        """Vectors of posts and topics, from beside the model as far as they are there."""
        tokens = config.text.late_interaction
        model_hash = (read_json(trained.folder / "encoder.json") or {})["identity"]
        folder = trained.folder.parent / "tokens" if tokens else trained.folder.parent
        folder.mkdir(exist_ok=True)
        place = EncodedPosts(folder, model_hash)
        wanted: dict[str, Side] = {
            post_id: "query" if question.turned else "document"
            for question in questions
            for post_id in self._searched(question)
        }
        written = _written(config)
        topics = {topic.post.post_id: written(extract(topic.post)) for q in questions for topic in q.topics}
        place.forget_changed({name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in topics.items()})
        asked: dict[str, Side] = {
            topic.post.post_id: "document" if question.turned else "query"
            for question in questions
            for topic in question.topics
            if topics[topic.post.post_id].strip()
        }
        new_posts, new_topics = place.lacks(list(wanted)), place.lacks(list(asked))
        if new_posts or new_topics:
            encoder = self._open(config, trained.folder if _is_trained(config) else None)
            encode, cut = _encode_tokens if tokens else _encode_texts, 0
            with self.console.stage("encoding", len(new_posts) + len(new_topics), "posts") as advance:
                options = {"posts_a_shard": _POSTS_A_SHARD[tokens], "identity": model_hash, "resumed": advance}

                def add(
                    ids: Sequence[str], side: Side, texts: Callable[[Sequence[str]], list[str]], kind: Kind
                ) -> None:
                    def some(ids: Sequence[str]) -> VectorSets:
                        nonlocal cut
                        some_texts = texts(ids)
                        cut += encoder.cut(some_texts, side)
                        return encode(encoder, some_texts, side, advance)

                    place.extend(lambda working: encoding_shards.in_shards(some, ids, working, **options), ids, kind)

                for side in SIDES:
                    posts = [post_id for post_id in new_posts if wanted[post_id] == side]
                    add(posts, side, lambda ids: self._read(ids, written), "posts")
                for side in SIDES:
                    some_topics = [name for name in place.lacks(new_topics) if asked[name] == side]
                    add(some_topics, side, lambda ids: [topics[name] for name in ids], "topics")
            if cut:
                self.console.say(
                    f"  {cut:,} texts are longer than text.max_length={encoder.model.max_seq_length} tokens, "
                    "and read to there alone"
                )
        return Encoded(place, place.costs(len(wanted)))

    def _searched(self, question: Question) -> list[str]:
        """The answers that have a text, of those that are to be searched."""
        with PostTexts(self._posts_db) as texts:
            answers = texts.post_ids("answer")
        wanted = question.indexed
        return answers if wanted is None else [post_id for post_id in answers if post_id in wanted]

    def index(self, config: DictConfig, encoded: Encoded, question: Question, folder: Path) -> Indexed:
        """Put answers into an index."""
        vectors: EncodedPosts = encoded.vectors
        return index_posts(config, vectors, vectors.there(self._searched(question)), folder)

    def retrieve(self, config: DictConfig, encoded: Encoded, indexed: Indexed, question: Question) -> Retrieved:
        """Search the index with the topics."""
        vectors: EncodedPosts = encoded.vectors
        topics = [topic for topic in question.topics if vectors.there([topic.post.post_id])]
        say_lost(self.console, question, topics, "have no text")
        return search_posts(config, vectors, indexed, topics)

    def visual_ids(self, config: DictConfig) -> Mapping[str, str]:
        """Return nothing: whole posts are searched, and no formulas."""
        return {}

    def space(self, config: DictConfig, encoded: Encoded, question: Question, choose: Choose) -> Space | None:
        """The vectors of whole texts; none with late interaction, whose vectors are of tokens."""
        if config.text.late_interaction:
            return None
        vectors: EncodedPosts = encoded.vectors
        topics = [topic for topic in question.topics if vectors.there([topic.post.post_id])]
        posts = choose(vectors.there(self._searched(question)))
        document = KINDS.index("document")

        def lengths(post_ids: Sequence[str]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
            encoder = self._open(config, vectors.folder / "best" if _is_trained(config) else None)
            return encoder.lengths(self._read(post_ids, _written(config)), "document")

        return Space(
            topics=[topic.topic_id for topic in topics],
            queries=vectors.sets([topic.post.post_id for topic in topics]),
            query_kinds=np.full(len(topics), document),
            posts=posts,
            documents=vectors.sets(posts),
            document_kinds=np.full(len(posts), document),
            lengths=lengths,
        )


def _written(config: DictConfig) -> Written:
    """How a post's text is written for the encoder."""
    return (lambda text: as_text(linearized(text))) if config.text.linearize else as_text


def _is_trained(config: DictConfig) -> bool:
    return bool(config.text.epochs or config.text.pretraining_epochs)


def _encode_texts(encoder: TextEncoder, texts: Sequence[str], side: Side, advance: Callable[[int], None]) -> VectorSets:
    vectors = torch.from_numpy(encoder.encode(texts, side, progress=advance))
    return VectorSets.of_sizes(vectors, torch.ones(len(texts), dtype=torch.int64))


def _encode_tokens(
    encoder: TextEncoder, texts: Sequence[str], side: Side, advance: Callable[[int], None]
) -> VectorSets:
    return encoder.encode_tokens(texts, side, progress=advance)
