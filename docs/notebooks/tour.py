# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # From a post to a search
#
# A post becomes a graph, graphs train an encoder, and the encoder searches. All of it runs on a laptop in a minute.
# `jupytext --to ipynb --execute docs/notebooks/tour.py` makes the notebook of this script.

# %%
import matplotlib.pyplot as plt
from IPython.display import SVG, display

from graphs.amr.embedded import EmbeddedParser
from graphs.amr.penman_text import decode
from graphs.corpus.corpus import open_corpus
from graphs.corpus.pairs import training_pairs
from graphs.corpus.post import Post
from graphs.corpus.text.latex_text import as_text
from graphs.corpus.text.placeholders import extract
from graphs.formulas import drawing as tree_drawing
from graphs.formulas.latex import parse_latex
from graphs.graph import drawing as graph_drawing
from graphs.graph import mathamr_plus
from mathamr import MathAMR
from mathamr.default_settings import values
from mathamr.model.config import EncoderConfig
from mathamr.training import TrainConfig

# %% [markdown]
# ## A formula as two trees
#
# The symbol layout tree says where symbols stand; the operator tree says what they do.

# %%
formula = parse_latex(r"\frac{x^2+1}{y}")
display(SVG(tree_drawing.svg(formula.slt, formula.opt, title="Layout and operators")))

# %% [markdown]
# ## A post as a graph
#
# Formulas leave placeholders in the sentences, a parser reads the sentences, and each formula's trees hang below its
# placeholder.

# %%
post = Post("1", "question", body="Prove that $x^2+1$ is irreducible.", markup="text")
text = extract(post)
print(text.sentences)
amr = decode(EmbeddedParser().parse([text.sentences])[0])
built = mathamr_plus.build(amr, text.formulas, [parse_latex(one.latex) for one in text.formulas])
graph = mathamr_plus.decode(built.penman, built.formula_map)
display(SVG(graph_drawing.svg(graph, title="Prove that x^2+1 is irreducible.")))

# %% [markdown]
# ## Train on pairs
#
# Questions and answers come from the docstrings of the installed scientific packages. A hundred pairs and a small
# encoder show the way; `python -m experiments.run +exp=trial` trains on all of them.

# %%
corpus = open_corpus("mathdocs", None)
posts = {post.post_id: post for post in corpus.posts() if isinstance(post, Post)}
pairs = [
    (as_text(extract(posts[pair.question_id])), as_text(extract(posts[pair.answer_id])))
    for pair in training_pairs(corpus, "accepted", 0)[:100]
]
encoder = EncoderConfig(**{**values("model", "thesis"), "hidden_dim": 32, "num_layers": 2, "num_bases": 8})
training = TrainConfig(**{**values("train", "laptop"), "epochs": 3, "batch_size": 16, "device": "cpu"})
model = MathAMR.train(pairs, encoder=encoder, training=training)

# %% [markdown]
# ## Compare two texts
#
# Each row is a formula or sentence of the query, each column one of the document. MaxSim adds up the highest value of
# each row.

# %%
why = model.explain("Why is $x^2+1$ irreducible? Is it prime?", "Suppose $x^2+1 = fg$. Then $f$ is constant.")
figure, axes = plt.subplots(figsize=(6, 4))
image = axes.imshow(why.similarities, vmin=-1, vmax=1, cmap="RdBu_r")
axes.set_yticks(range(len(why.query)), [node.text or node.kind for node in why.query])
axes.set_xticks(range(len(why.document)), [node.text or node.kind for node in why.document], rotation=30, ha="right")
figure.colorbar(image, label="cosine similarity")
figure.tight_layout()
plt.show()
print(f"MaxSim {why.score:.3f}")

# %% [markdown]
# ## Search

# %%
with model.index([answer for _, answer in pairs]) as index:
    for result in index.search("matrix $A^{-1}$", k=3, explain=True):
        print(f"{result.score:.3f}  {result.post.snippet(80)}")
        best = max(result.explanation.matches, key=lambda match: match.score)
        query, document = (node.text or node.kind for node in (best.query, best.document))
        print(f"       best match {best.score:.3f}: {query} <- {document}")

# %% [markdown]
# ## Save it
#
# The folder has the weights, the vocabulary, the settings of the graphs and a model card.
# `MathAMR.from_pretrained("demo-model")` opens it again.

# %%
model.save_pretrained("demo-model", data="100 pairs of docstrings", limits="A demonstration: too small to be of use.")
