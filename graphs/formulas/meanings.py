"""Names of Content MathML and of LaTeXML's meanings, and their labels in an operator tree.

>>> ELEMENTS["plus"], ELEMENTS["lt"], ELEMENTS["sin"], ELEMENTS["infinity"]
('U!plus', 'O!lt', 'F!sin', 'C!infinity')
>>> meaning_label("similar-to"), meaning_label("modulo"), meaning_label("absent"), meaning_label("no-such-meaning")
('U!similar-to', 'O!rem', 'W!', None)

The lists are those of MathAMR's copy of Tangent-S. An operator is unordered (``U!``) or ordered (``O!``) as in the
indexes that these trees must match, even if mathematics differs (``norm`` is an ``O!``).
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


UNORDERED_ELEMENTS = _names(
    """
    plus times eq neq approx equivalent union intersect and or
    """
)
ORDERED_ELEMENTS = _names(
    """
    lt gt leq geq minus divide subset prsubset notsubset notprsubset in notin forall exists setdiff not implies int
    sum partialdiff limit factorial compose root
    """
)
FUNCTION_ELEMENTS = _names(
    """
    sin cos tan cot sec csc sinh cosh tanh coth sech csch arcsin arccos arctan arccot arcsec arccsc arcsinh arccosh
    arctanh arccoth arcsech arccsch abs exp log ln min max ceiling floor arg gcd real imaginary
    """
)
CONSTANT_ELEMENTS = _names(
    """
    infinity emptyset imaginaryi exponentiale reals integers naturalnumbers complexes rationals
    """
)

ELEMENTS = {
    **{name: f"U!{name}" for name in UNORDERED_ELEMENTS},
    **{name: f"O!{name}" for name in ORDERED_ELEMENTS},
    **{name: f"F!{name}" for name in FUNCTION_ELEMENTS},
    **{name: f"C!{name}" for name in CONSTANT_ELEMENTS},
    "determinant": "F!det",
}
"""Label by element, for the elements of Content MathML that denote a symbol."""

AMBIGUOUS = {
    "formulae-sequence": "O!form-seq",
    "fragments": "O!fragments",
    "missing-subexpression": "W!",
    "subscript": "O!SUB",
    "superscript": "O!SUP",
}
"""Label by name, for ``<csymbol cd="ambiguous">``."""

_GARBLED_MEANINGS = ("⌈⟩⊑⟩⌈⌉", "ב⪸ב", "⌊⟩\\≀⇕⟩⊣↕")  # names in calligraphic letters, as some formulas of the index have
ORDERED_MEANINGS = _names(
    """
    annotated apl-reversal approaches-limit approximately-equals-or-image-of arcdegree arcminute arcsecond assign
    asymptotically-equals average-integral because between big-o binomial bottom bra cancel cases
    clockwise-contour-integral complement conditional conditional-set contains contains-as-subgroup
    contains-as-subgroup-or-equals continued-fraction contour-integral contour-integral-around-below corresonds-to
    counter-clockwise-contour-integral counterclockwise-contour-integral currency-dollar day degree
    difference-between differential-d dimension direct-product direct-sum divides does-not-prove
    double-contour-integral double-factorial double-integral double-subset-of double-superset-of equals-or-preceeds
    equals-or-succeeds evaluated-at expectation forces greater-than-and-not-approximately-equals
    greater-than-and-not-equals greater-than-and-not-equivalent-to greater-than-or-approximately-equals
    greater-than-or-equivalent-to greater-than-or-similar-to greater-than-or-similar-to-or-equal hour
    image-of-or-approximately-equals implied-by infimum infinity injective-limit kernel ket leads-to
    left-normal-factor-semidirect-product left-semidirect-product less-than less-than-and-not-approximately-equals
    less-than-and-not-equals less-than-and-not-equivalent-to less-than-or-approximately-equals less-than-or-equals
    less-than-or-similar-to less-than-or-similar-to-or-equal limit-from limit-infimum limit-supremum maps-to
    minus-or-plus minute models much-greater-than much-less-than multiple-integral norm not-approaches-limit
    not-bottom not-compose not-contains not-contains-as-subgroup not-contains-as-subgroup-or-equals
    not-contains-nor-equals not-divide not-divides not-does-not-prove not-double-subset-of not-equals-or-preceeds
    not-exists not-factorial not-for-all not-forces not-greater-than not-greater-than-and-not-equals
    not-greater-than-nor-equals not-greater-than-or-equals not-greater-than-or-equals-or-less-than
    not-greater-than-or-equivalent-to not-greater-than-or-less-than not-implies not-infinity not-integral
    not-leads-to not-less-than not-less-than-nor-equals not-less-than-or-approximately-equals
    not-less-than-or-equals not-less-than-or-greater-than not-less-than-or-similar-to not-maps-to not-minus
    not-models not-much-greater-than not-much-less-than not-not not-not-divides not-not-element-of
    not-not-subset-of-nor-equals not-not-superset-of-nor-equals not-partial-differential not-plus-or-minus
    not-precedes not-precedes-nor-equals not-precedes-or-equals not-precedes-or-equivalent-to not-proves
    not-similar-to-or-equals not-square-image-of not-square-image-of-nor-equals not-square-image-of-or-equals
    not-square-original-of not-square-original-of-or-equals not-subgroup-of not-subgroup-of-nor-equals
    not-subgroup-of-or-equals not-subset-nor-equals not-subset-of not-subset-of-and-not-equals
    not-subset-of-nor-equals not-subset-of-or-equals not-succeeds not-succeeds-nor-equals not-succeeds-or-equals
    not-succeeds-or-equivalent-to not-sum not-superset-of not-superset-of-and-not-equals not-superset-of-nor-equals
    not-superset-of-or-equals not-very-much-greater-than not-very-much-less-than percent perpendicular-to
    plus-or-minus precedes precedes-and-not-approximately-equals precedes-and-not-equals
    precedes-and-not-equivalent-to precedes-or-approximately-equals precedes-or-equals precedes-or-equivalent-to
    product projective-limit proportional-to proves quadruple-integral quantum-operator-product
    quaternion-double-integral quaternion-integral right-normal-factor-semidirect-product right-semidirect-product
    second similar-to-or-greater-than similar-to-or-less-than square-contour-integral square-image-of
    square-image-of-or-equals square-original-of square-original-of-or-equals subgroup-of subgroup-of-or-equals
    succeeds succeeds-and-not-approximately-equals succeeds-and-not-equals succeeds-and-not-equivalent-to
    succeeds-or-approximately-equals succeeds-or-equals succeeds-or-equivalent-to superset-of
    superset-of-and-not-equals superset-of-or-equals supremum surface-integral therefore top trace
    triple-contour-integral triple-integral upper-complexes very-much-greater-than very-much-less-than weierstrass-p
    """
).union(_GARBLED_MEANINGS)
UNORDERED_MEANINGS = _names(
    """
    additive-conjunction additive-disjunction approximately-equals approximately-equals-or-equals coproduct
    double-intersection double-union equivalent-to exclusive-or geometrically-equals
    greater-than-or-equals-or-less-than greater-than-or-less-than iff inner-product intersection-plus join
    less-than-or-equals-or-greater-than less-than-or-greater-than multiplicative-conjunction
    multiplicative-disjunction not-and not-approximately-equals not-approximately-equals-or-equals
    not-asymptotically-equals not-coproduct not-difference-between not-direct-sum not-equivalent-to
    not-equivalent-to-nor-equals not-exclusive-or not-geometrically-equals not-iff not-intersection
    not-less-than-nor-greater-than not-not-approximately-equals not-not-equals not-not-equivalent-to not-or
    not-parallel-to not-perpendicular-to not-proper-intersection not-proportional-to not-similar-to not-times
    parallel-to proper-intersection similar-to similar-to-or-equals square-intersection square-union subset-plus
    superset-plus symmetric-difference tensor-product times
    """
)
_OTHER_MEANINGS = {
    "absent": "W!",
    "empty-set": "C!empty-set",
    "not-empty-set": "C!not-empty-set",
    "for-all": "O!forall",
    "hyperbolic-cotangent": "F!coth",
    "modulo": "O!rem",
    "planck-constant-over-2-pi": "C!hbar",
    "square-root": "O!root",
}
_DELIMITED = "delimited-"


def meaning_label(meaning: str) -> str | None:
    """Return the label of ``<csymbol cd="latexml">`` with this meaning, in lower case; ``None`` if it has none.

    As in Tangent-S a delimited expression loses the first character of its delimiters, and some meanings are numbers:

    >>> meaning_label("delimited-&lsqb;&rsqb;"), meaning_label("2")
    ('M!D-lsqb;&rsqb;', 'N!2.0')
    """
    if meaning in ORDERED_MEANINGS:
        return f"O!{meaning}"
    if meaning in UNORDERED_MEANINGS:
        return f"U!{meaning}"
    if meaning in _OTHER_MEANINGS:
        return _OTHER_MEANINGS[meaning]
    if meaning.startswith(_DELIMITED):
        return f"M!D-{meaning[len(_DELIMITED) + 1 :]}"
    try:
        return f"N!{float(meaning)}"
    except ValueError:
        return None
