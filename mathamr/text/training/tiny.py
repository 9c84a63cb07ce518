"""A small ModernBERT with random weights and a tokenizer of the collection: everything runs in seconds, offline."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from mathamr.text.encoder import TextEncoder, without_bars
from mathamr.training.seeds import drawn_from


def make_tiny(texts: Iterable[str], folder: Path, *, vocabulary: int = 4_000, seed: int = 0) -> TextEncoder:
    """Make a ModernBERT of two layers and 64 dimensions with random weights, and a tokenizer trained on ``texts``.

    It tries everything an encoder can do within seconds; it finds little more than shared words. It is written to
    ``folder``, atomically; the folder may exist if it is empty.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import ModernBertConfig, ModernBertModel, PreTrainedTokenizerFast

    without_bars()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=512,
    )  # fmt: skip
    config = ModernBertConfig(
        vocab_size=len(fast), hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=512, pad_token_id=0, bos_token_id=2, eos_token_id=3,
        cls_token_id=2, sep_token_id=3,
    )  # fmt: skip
    with drawn_from(seed):
        model = ModernBertModel(config)
    writing = folder.with_name(f".{folder.name}.writing")
    shutil.rmtree(writing, ignore_errors=True)
    backbone = writing / "backbone"
    model.save_pretrained(backbone)
    fast.save_pretrained(backbone)
    transformer = Transformer(str(backbone), max_seq_length=512)
    encoder = SentenceTransformer(modules=[transformer, Pooling(64, "mean")], device="cpu")
    encoder.save(str(writing))
    shutil.rmtree(backbone)
    writing.replace(folder)
    return TextEncoder(SentenceTransformer(str(folder), device="cpu"), "tiny")
