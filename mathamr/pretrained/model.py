"""A trained model that reads text: :class:`MathAMR`.

    from mathamr import MathAMR

    model = MathAMR.from_pretrained("models/arqmath")
    sets = model.encode(["Prove that $x^2+1$ is irreducible.", "Is $x^2+1$ prime?"])
    model.similarity(sets, sets)                          # MaxSim, (2, 2)
    index = model.index(["The sum of two squares ...", "Suppose $x^2+1 = fg$ ..."])
    index.search("Why is $x^2+1$ irreducible?", k=1, explain=True)
    model.save_pretrained("folder")

Formulas are LaTeX between dollar signs, ``\\(..\\)`` or ``\\[..\\]``. A text becomes a graph in the same way as the
posts of a collection (:class:`graphs.graph.graph_maker.GraphMaker`), so its vectors equal those of an experiment.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphs.amr.embedded import EmbeddedParser
from graphs.corpus.post import Post
from graphs.errors import Failure, RetrievalError
from graphs.graph.graph_maker import ParserFactory
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Vocabulary
from graphs.processes import batched
from graphs.stores.store import GraphStore
from mathamr import maxsim
from mathamr.maxsim import VectorSets
from mathamr.model.config import EncoderConfig
from mathamr.model.encoder import Encoder
from mathamr.pretrained import folder as model_folder
from mathamr.pretrained.card import card
from mathamr.pretrained.folder import ModelFiles
from mathamr.pretrained.post_index import PostIndex
from mathamr.retrieval.explanation import Explanation, explain
from mathamr.search.query import POSTS_A_BATCH, EncodedQuery, QueryEncoder, is_same_parser, query_sets
from mathamr.stages.collection import recorded_parser
from mathamr.stages.console import Console
from mathamr.training import checkpoint

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from mathamr.training.config import TrainConfig


class MathAMR:
    """Trained model: an encoder with its vocabulary, the settings of its graphs, and an AMR parser.

    Args:
        files: content of a model's folder.
        parser: factory of the AMR parser for texts (docs/amr.md); None: the embedded parser.
        device: device of the encoder.

    Raises:
        TrainingError: the weights do not fit the settings.
    """

    def __init__(
        self, files: ModelFiles, *, parser: ParserFactory | None = None, device: torch.device | str = "cpu"
    ) -> None:
        self._files = files
        self._parser = parser or EmbeddedParser
        self._encoder = checkpoint.encoder_of(files.info, files.weights, device)
        self._reader = QueryEncoder(self._encoder, files.vocabulary, files.spec, parser=self._parser)

    def __repr__(self) -> str:
        parameters = sum(weights.numel() for weights in self._encoder.parameters())
        return f"MathAMR({parameters:,} parameters, parser {self._files.parser!r})"

    # -- opening, training and saving --------------------------------------------------------------------------------

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        *,
        revision: str | None = None,
        parser: ParserFactory | None = None,
        device: torch.device | str = "cpu",
    ) -> MathAMR:
        """Open a model.

        Args:
            name: folder, or the id of a model on the Hugging Face Hub (``owner/name``).
            revision: branch, tag or commit of a model on the hub.
            parser: factory of an AMR parser (docs/amr.md); None: the embedded one.
            device: device of the encoder.

        Raises:
            ConfigError: neither a folder nor a hub id.
            StoreError: a file is missing or damaged, or two files do not belong together.
        """
        files = model_folder.read(model_folder.folder_of(name, revision))
        model = cls(files, parser=parser, device=device)
        if parser is None and not is_same_parser(files.parser, model._reader.parser):
            warnings.warn(
                f"{name} was trained on graphs of the parser {files.parser}; {model._reader.parser} reads texts "
                "unless parser= names another",
                stacklevel=2,
            )
        return model

    @classmethod
    def from_checkpoint(
        cls,
        path: str | os.PathLike[str],
        tensors: str | os.PathLike[str],
        *,
        parser_name: str | None = None,
        device: torch.device | str = "cpu",
    ) -> MathAMR:
        """Open a training checkpoint, e.g. ``model/best``.

        Args:
            path: folder of the checkpoint.
            tensors: preprocessed.db that it was trained on; it holds the vocabulary.
            parser_name: name of the AMR parser of these graphs; None: as the collection beside ``tensors`` names it.

        Raises:
            ConfigError: collections of several parsers are beside ``tensors``.
            TrainingError: ``path`` is not a checkpoint.
            StoreError: the checkpoint was trained on other tensors.
        """
        trained = checkpoint.load(path)
        graphs = GraphStore(tensors, config_hash=trained.info.config_hash)
        parser = parser_name or recorded_parser(Path(tensors), graphs.source)
        files = ModelFiles(trained.info, trained.weights, graphs.vocabulary, graphs.spec, parser)
        return cls(files, device=device)

    @classmethod
    def train(
        cls,
        pairs: Iterable[tuple[str, str]],
        *,
        out: str | os.PathLike[str] | None = None,
        encoder: EncoderConfig | None = None,
        training: TrainConfig | None = None,
        spec: VirtualNodeSpec | None = None,
        workers: int = 1,
    ) -> MathAMR:
        """Train a model on pairs of a question and one of its answers.

        Args:
            pairs: texts; the answers of other questions are the negatives.
            out: folder for graphs, tensors and checkpoints; an interrupted run resumes from it; None: a temporary
                folder.
            encoder: settings of the encoder; None: ``conf/model/thesis.yaml``.
            training: settings of training; None: ``conf/train/laptop.yaml``, with smaller batches and more held-out
                questions for few pairs.
            spec: virtual nodes of the graphs; None: the default ones.
            workers: number of parsing processes.

        Raises:
            ConfigError: contradictory settings, or too few pairs for a batch.
            TrainingError: fewer than three questions, or no pair whose texts both have a graph.
        """
        from mathamr.pretrained.training import train_on_pairs

        with tempfile.TemporaryDirectory() as temporary:
            place = Path(temporary if out is None else out)
            best, tensors = train_on_pairs(pairs, place, encoder=encoder, training=training, spec=spec, workers=workers)
            return cls.from_checkpoint(best, tensors)

    def save_pretrained(
        self,
        path: str | os.PathLike[str],
        *,
        data: str | None = None,
        scores: Mapping[str, float] | None = None,
        limits: str | None = None,
    ) -> None:
        """Write the model to a folder that :meth:`from_pretrained` opens, with a model card.

        If an argument is omitted, the card keeps the entry of the opened model.

        Args:
            path: new or empty folder, or the folder of a saved model, which is replaced; a link is followed.
            data: training data, as stated on the card.
            scores: measured values by name.
            limits: limits, as stated on the card.

        Warns:
            UserWarning: another model is replaced.

        Raises:
            StoreError: the folder holds other files, or cannot be written.
        """
        place = Path(path).resolve()
        self._write(place, place.name, data=data, scores=scores, limits=limits)

    def _write(self, place: Path, name: str, **entries: str | Mapping[str, float] | None) -> None:
        new: dict[str, Any] = {entry: value for entry, value in entries.items() if value is not None}
        files = replace(self._files, stated=replace(self._files.stated, **new))
        parameters = sum(tensor.numel() for tensor in files.weights.values())
        shown = card(name, files.stated, files.info, parser=files.parser, parameters=parameters)
        model_folder.write(place, files, shown)

    def push_to_hub(
        self,
        name: str,
        *,
        data: str | None = None,
        scores: Mapping[str, float] | None = None,
        limits: str | None = None,
        private: bool = False,
        token: str | None = None,
    ) -> str:
        """Upload the model to the Hugging Face Hub; return the address of the commit.

        Args:
            name: ``owner/name``; a missing repository is created.
            data: training data, as stated on the card.
            scores: measured values by name.
            limits: limits, as stated on the card.
            private: make a new repository private.
            token: access token; None: the token of the current login.

        Raises:
            ConfigError: the package huggingface_hub is missing.
        """
        with tempfile.TemporaryDirectory() as temporary:
            place = Path(temporary) / "model"
            self._write(place, name, data=data, scores=scores, limits=limits)
            return model_folder.upload(place, name, private=private, token=token)

    # -- parts of a model --------------------------------------------------------------------------------------------

    @property
    def vocabulary(self) -> Vocabulary:
        """Labels and relations of the encoder."""
        return self._files.vocabulary

    @property
    def spec(self) -> VirtualNodeSpec:
        """Virtual nodes of the graphs."""
        return self._files.spec

    @property
    def encoder(self) -> Encoder:
        """Encoder in evaluation mode."""
        return self._encoder

    @property
    def dimension(self) -> int:
        """Length p of a vector."""
        return EncoderConfig(**self._files.info.encoder).projection_dim

    @property
    def device(self) -> torch.device:
        """Device of the encoder; vectors are returned on the CPU."""
        return next(self._encoder.parameters()).device

    def to(self, device: torch.device | str) -> MathAMR:
        """Move the encoder to a device; return the model."""
        self._encoder.to(device)
        return self

    # -- encoding and search -----------------------------------------------------------------------------------------

    def read(
        self, texts: str | Post | Sequence[str | Post], *, show_progress_bar: bool | None = None
    ) -> list[EncodedQuery]:
        """Return the vectors of each text with the source of each vector: a formula, a sentence or the whole text.

        Args:
            texts: texts, or posts with ids.
            show_progress_bar: show progress on standard error; None: only for many texts, on a terminal.

        Raises:
            RetrievalError: a text without a graph; the message gives its position.
        """
        encoded_texts: list[EncodedQuery] = []
        posts = as_posts(texts)
        if show_progress_bar is None:
            show_progress_bar = len(posts) > POSTS_A_BATCH and sys.stderr.isatty()
        if repeated := [post_id for post_id, count in Counter(post.post_id for post in posts).items() if count > 1]:
            raise RetrievalError(f"two posts have the id {repeated[0]}; ids must differ; a text's id is its position")
        with Console(quiet=not show_progress_bar).stage("encoding", len(posts), "texts") as advance:
            for batch in batched(posts, POSTS_A_BATCH):
                for encoded in self._reader.encode_posts(batch):
                    if isinstance(encoded, Failure):
                        name = f"text {len(encoded_texts)} ({posts[len(encoded_texts)].post_id})"
                        raise RetrievalError(f"{name} cannot be read: {encoded.message}; remove it")
                    encoded_texts.append(encoded)
                advance(len(batch))
        return encoded_texts

    def encode(self, texts: str | Post | Sequence[str | Post], *, show_progress_bar: bool | None = None) -> VectorSets:
        """Return one set of vectors for each text.

        Args:
            texts: texts, or posts with ids.
            show_progress_bar: show progress on standard error; None: only for many texts, on a terminal.

        Shapes: ``vectors`` (V, p), of unit length; the last vector of each set represents the whole text.

        Raises:
            RetrievalError: no texts, or a text without a graph; the message gives its position.
        """
        encoded = self.read(texts, show_progress_bar=show_progress_bar)
        if not encoded:
            raise RetrievalError("no texts to encode; give at least one")
        return query_sets(encoded)

    def similarity(
        self,
        queries: VectorSets | str | Post | Sequence[str | Post],
        documents: VectorSets | str | Post | Sequence[str | Post],
        *,
        normalize: bool = False,
    ) -> Tensor:
        """Return the MaxSim of each query with each document, (num_queries, num_documents) (thesis, Equation 3.4).

        Args:
            queries: sets of :meth:`encode`, or texts.
            documents: sets of :meth:`encode`, or texts.
            normalize: divide by the number of query vectors (Equation 3.7), so that scores are at most 1.
        """
        first, second = (
            given if isinstance(given, VectorSets) else self.encode(given) for given in (queries, documents)
        )
        return maxsim.scores(first, second, normalize=normalize)

    def explain(self, query: str, document: str) -> Explanation:
        """Return the similarities of the virtual nodes of two texts (thesis, Figure 4.1).

        Raises:
            RetrievalError: a text without a graph.
        """
        first, second = self.read([query, document])
        (own,), (other,) = first.vectors, second.vectors
        return explain(own, first.nodes, other, second.nodes)

    def index(self, posts: Sequence[str | Post], folder: str | os.PathLike[str] | None = None) -> PostIndex:
        """Return an index of posts; ``mathamr search`` and ``mathamr serve`` can open its folder.

        Args:
            posts: texts, whose positions become their ids, or posts with ids.
            folder: folder of the index; None: a temporary folder that ``close`` removes.

        Raises:
            RetrievalError: no posts, two posts with the same id, or a post without a graph.
            StoreError: the folder cannot be written.
        """
        posts = as_posts(posts)
        encoded = self.read(posts)
        files = replace(self._files, parser=self._reader.parser)  # an index names the parser of its posts
        return PostIndex.build(posts, encoded, files, self._reader, folder)


def as_posts(texts: str | Post | Sequence[str | Post]) -> list[Post]:
    """Return texts as posts; the id of each is its position.

    >>> [(post.post_id, post.body) for post in as_posts(["$x$", Post("7", "answer", body="$y$")])]
    [('0', '$x$'), ('7', '$y$')]

    Raises:
        RetrievalError: one of them is neither a string nor a post, or they have no order.
    """
    if not isinstance(texts, Iterable | Post) or isinstance(texts, bytes | Mapping | Set):
        raise RetrievalError(f"the texts are {texts!r:.80}; give a string, a Post, or a list of them")
    given = [texts] if isinstance(texts, str | Post) else list(texts)
    for place, text in enumerate(given):
        if not isinstance(text, str | Post):
            raise RetrievalError(f"text {place} is {text!r:.80}; give a string or a Post")
    return [
        text if isinstance(text, Post) else Post(str(place), "answer", body=text, markup="text")
        for place, text in enumerate(given)
    ]
