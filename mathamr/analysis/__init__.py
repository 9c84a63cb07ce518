"""Instruments that measure an embedding space. Each takes plain arrays and can be used alone.

``similarities`` compares queries with documents (cosine or MaxSim) in bounded memory. ``bootstrap``, ``thresholds``
and ``overlap`` work on its result. ``components``, ``isotropy``, ``shift`` and ``collapse`` read vectors alone,
``correlation`` compares models, ``confidence`` judges single questions, and ``plots`` draws. ``docs/analysis.md`` and
``docs/comparing-models.md`` explain all of them. The measures are those of Roychowdhury et al., *Investigating
Distributions of Telecom Adapted Sentence Embeddings for Document Retrieval* (2025), called "the paper" in these
modules; measures of the thesis are named as such.
"""
