"""Instruments that look into an embedding space; each takes plain arrays and can be used alone.

``similarities`` (queries against documents, cosine or MaxSim, in bounded memory) comes first; on what it finds work
``bootstrap``, ``thresholds`` and ``overlap``. ``components``, ``isotropy``, ``shift`` and ``collapse`` look at vectors
alone, ``correlation`` compares models, ``plots`` draws; ``docs/analysis.md`` goes through all of them. The measures are
those of Roychowdhury et al., *Investigating Distributions of Telecom Adapted Sentence Embeddings for Document
Retrieval* (2025), called "the paper" in these modules; the thesis's own are named as such.
"""
