r"""Symbols of LaTeX: for each command its part of speech, its character, and its meaning.

>>> SYMBOLS[r"\leq"]
Token(RELOP, '≤', 'O!leq')
>>> SYMBOLS[r"\sin"], SYMBOLS["x"]
(Token(TRIGFUNCTION, 'V!sin', 'F!sin'), Token(UNKNOWN, 'V!x', 'V!x'))

Parts of speech and meanings are those that LaTeXML gives to the commands of LaTeX and of the AMS packages. The formulas
of an index were read with them, so a query must be read with them too. A line of a table is a command, its character
(``=``: the name of the command; ``BAR``: ``|``) and, if it has one, its meaning.
"""

from __future__ import annotations

from graphs.formulas.latex.nodes import Token
from graphs.formulas.mathml import clean_plain
from graphs.formulas.meanings import ELEMENTS, meaning_label

IDENTIFIERS = frozenset(("UNKNOWN", "ID", "ATOM", "FUNCTION", "OPFUNCTION", "TRIGFUNCTION"))
"""Parts of speech written as variables (``V!`` in an SLT); all others but numbers are bare operators."""

_ELEMENT_OF_MEANING = {
    "absolute-value": "abs", "approximately-equals": "approx", "argument": "arg", "cosecant": "csc", "cosine": "cos",
    "cotangent": "cot", "element-of": "in", "empty-set": "emptyset", "equals": "eq", "equivalent-to": "equivalent",
    "exponential": "exp", "for-all": "forall", "greater-than": "gt", "greater-than-or-equals": "geq",
    "hyperbolic-cosine": "cosh", "hyperbolic-sine": "sinh", "hyperbolic-tangent": "tanh",
    "imaginary-part": "imaginary", "integral": "int", "intersection": "intersect", "inverse-cosine": "arccos",
    "inverse-sine": "arcsin", "inverse-tangent": "arctan", "less-than": "lt", "less-than-or-equals": "leq",
    "logarithm": "log", "maximum": "max", "minimum": "min", "natural-logarithm": "ln", "not-element-of": "notin",
    "not-equals": "neq", "partial-differential": "partialdiff", "real-part": "real", "secant": "sec",
    "set-minus": "setdiff", "sine": "sin", "subset-of": "subset", "subset-of-and-not-equals": "prsubset",
    "subset-of-or-equals": "subset", "tangent": "tan",
}  # fmt: skip


def opt_label(meaning: str) -> str:
    """Return the label of a meaning in an OPT; a meaning unknown to Content MathML and the indexes is an ``O!``.

    >>> opt_label("plus"), opt_label("similar-to"), opt_label("real-part")
    ('U!plus', 'U!similar-to', 'F!real')
    """
    element = _ELEMENT_OF_MEANING.get(meaning, meaning)
    return ELEMENTS.get(element) or meaning_label(meaning) or f"O!{meaning}"


def symbol(role: str, text: str, meaning: str = "", *, name: str = "", limits: bool = False) -> Token:
    """Make a token of this part of speech: ``text`` is its character, ``meaning`` its operation if known."""
    plain = clean_plain(text)
    if role == "NUMBER":
        return Token(role, text, f"N!{plain}", f"N!{plain}")
    slt = f"V!{plain}" if role in IDENTIFIERS else plain
    opt = opt_label(meaning) if meaning else f"V!{'italic-' if text in _NO_ITALIC else ''}{plain}"
    return Token(role, text, slt, opt, name=name or meaning or text, limits=limits)


_NO_ITALIC = frozenset("ϵϑϰϕϱϖ")
"""Letters without a mathematical italic in LaTeXML; their content is ``italic-ϵ``."""

_TABLES = {
    "UNKNOWN": r"""
        \alpha α | \beta β | \gamma γ | \delta δ | \epsilon ϵ | \varepsilon ε | \zeta ζ | \eta η | \theta θ
        \vartheta ϑ | \iota ι | \kappa κ | \varkappa ϰ | \lambda λ | \mu μ | \nu ν | \xi ξ | \omicron ο | \pi π
        \varpi ϖ | \rho ρ | \varrho ϱ | \sigma σ | \varsigma ς | \tau τ | \upsilon υ | \phi ϕ | \varphi φ | \chi χ
        \psi ψ | \omega ω | \Gamma Γ | \Delta Δ | \Theta Θ | \Lambda Λ | \Xi Ξ | \Pi Π | \Sigma Σ | \Upsilon Υ
        \Phi Φ | \Psi Ψ | \Omega Ω | \digamma ϝ | \varGamma Γ | \varDelta Δ | \varTheta Θ | \varLambda Λ | \varXi Ξ
        \varPi Π | \varSigma Σ | \varUpsilon Υ | \varPhi Φ | \varPsi Ψ | \varOmega Ω | \aleph ℵ | \beth ℶ | \gimel ℷ
        \daleth ℸ | \imath ı | \jmath ȷ | \ell ℓ | \mho ℧ | \eth ð | \Finv Ⅎ | \Game ⅁ | \Bbbk 𝕜
        \wp ℘ weierstrass-p | \angle ∠ | \measuredangle ∡ | \sphericalangle ∢ | \flat ♭ | \natural ♮ | \sharp ♯
        \Box □ | \square □ | \Diamond ◇ | \lozenge ◊ | \triangle △ | \vartriangle △ | \triangledown ▽ | \clubsuit ♣
        \diamondsuit ♢ | \heartsuit ♡ | \spadesuit ♠ | \blacktriangle ▲ | \blacktriangledown ▼ | \blacksquare ■
        \blacklozenge ◆ | \bigstar ★ | \circledS Ⓢ | \backprime ‵ | \complement ∁ complement | \diagup ╱
        \diagdown ╲ | \checkmark ✓ | \maltese ✠ | \circledR ® | \yen ¥ | \pounds £ | \copyright © | \S § | \P ¶
        \# # | \_ _ | \mapstochar ⸠ | \aa å | \AA Å | \o ø | \O Ø | \ss ß | \ae æ | \AE Æ | \oe œ | \OE Œ
        \degree ° | " " | @ @ | ? ? | ` ‘ | # #
    """,
    "ID": r"""
        \infty ∞ infinity | \emptyset ∅ empty-set | \varnothing ∅ empty-set | \hbar ℏ planck-constant-over-2-pi
        \hslash ℏ | \ldots … | \dotsc … | \dotso … | \cdots ⋯ | \dotsb ⋯ | \dotsm ⋯ | \dotsi ⋯ | \vdots ⋮ | \ddots ⋱
        \hdots … | \textellipsis …
    """,
    "OPFUNCTION": r"""
        \arccos = inverse-cosine | \arcsin = inverse-sine | \arctan = inverse-tangent | \arg = argument
        \deg = degree | \exp = exponential | \hom = | \ker = kernel | \lg = | \ln = natural-logarithm
        \log = logarithm | \Re ℜ real-part | \Im ℑ imaginary-part
    """,
    "OPFUNCTION ": r"\gcd = gcd | \max = maximum | \min = minimum | \Pr =",
    "TRIGFUNCTION": r"""
        \cos = cosine | \cosh = hyperbolic-cosine | \cot = cotangent | \coth = hyperbolic-cotangent
        \csc = cosecant | \sec = secant | \sin = sine | \sinh = hyperbolic-sine | \tan = tangent
        \tanh = hyperbolic-tangent
    """,
    "LIMITOP": r"""
        \det = determinant | \dim = dimension | \inf = infimum | \lim = limit | \sup = supremum
        \liminf lim&inf limit-infimum | \limsup lim&sup limit-supremum | \injlim inj&lim injective-limit
        \projlim proj&lim projective-limit
    """,
    "SUMOP": r"""
        \sum ∑ sum | \prod ∏ product | \coprod ∐ coproduct | \bigcap ⋂ intersection | \bigcup ⋃ union
        \bigsqcup ⨆ square-union | \bigvee ⋁ or | \bigwedge ⋀ and | \bigodot ⨀ | \bigotimes ⨂ tensor-product
        \bigoplus ⨁ direct-sum | \biguplus ⨄ symmetric-difference
    """,
    "INTOP": r"""
        \int ∫ integral | \oint ∮ contour-integral | \iint ∬ double-integral | \iiint ∭ triple-integral
        \iiiint ⨌ quadruple-integral | \idotsint ∫⋯∫ multiple-integral | \smallint ∫ integral | \intop ∫ integral
        \oiint ∯ surface-integral
    """,
    "BIGOP": r"\forall ∀ for-all | \exists ∃ exists",
    "DIFFOP": r"\partial ∂ partial-differential",
    "OPERATOR": r"\nabla ∇ | \surd √ square-root | \textdollar $ currency-dollar | \$ $ currency-dollar",
    "FUNCTION": r"\nexists ∄ not-exists | \neg ¬ not | \lnot ¬ not",
    "ADDOP": r"""
        + + plus | - - minus | \pm ± plus-or-minus | \mp ∓ minus-or-plus | \cap ∩ intersection | \cup ∪ union
        \uplus ⊎ | \sqcap ⊓ square-intersection | \sqcup ⊔ square-union | \vee ∨ or | \lor ∨ or | \wedge ∧ and
        \land ∧ and | \setminus ∖ set-minus | \smallsetminus ∖ set-minus | \diamond ⋄ | \bigtriangleup △
        \bigtriangledown ▽ | \triangleleft ⊲ | \triangleright ⊳ | \lhd ⊲ subgroup-of | \rhd ⊳ contains-as-subgroup
        \unlhd ⊴ subgroup-of-or-equals | \unrhd ⊵ contains-as-subgroup-or-equals | \oplus ⊕ direct-sum
        \ominus ⊖ symmetric-difference | \top ⊤ top | \bot ⊥ bottom | \dotplus ∔ | \Cap ⋒ double-intersection
        \doublecap ⋒ double-intersection | \Cup ⋓ double-union | \doublecup ⋓ double-union | \barwedge ⊼ not-and
        \veebar ⊻ exclusive-or | \doublebarwedge ⩞ | \boxminus ⊟ | \boxplus ⊞ | \curlywedge ⋏ and | \curlyvee ⋎ or
        \circleddash ⊝ | \intercal ⊺ | \And & and | \& & and
    """,
    "MULOP": r"""
        * * times | / / divide | \times × times | \div ÷ divide | \ast ∗ | \star ⋆ | \circ ∘ compose | \bullet ∙
        \cdot ⋅ | \wr ≀ | \otimes ⊗ tensor-product | \oslash ⊘ | \odot ⊙ direct-product | \bigcirc ○ | \dagger †
        \dag † | \ddagger ‡ | \ddag ‡ | \amalg ⨿ coproduct | \boxtimes ⊠ | \boxdot ⊡ | \divideontimes ⋇
        \ltimes ⋉ left-normal-factor-semidirect-product | \rtimes ⋊ right-normal-factor-semidirect-product
        \leftthreetimes ⋋ left-semidirect-product | \rightthreetimes ⋌ right-semidirect-product | \circledast ⊛
        \circledcirc ⊚ | \centerdot ∙ | \backslash \ | \slash / divide
    """,
    "RELOP": r"""
        = = equals | < < less-than | > > greater-than | \lt < less-than | \gt > greater-than | := := assign
        \leq ≤ less-than-or-equals | \le ≤ less-than-or-equals | \geq ≥ greater-than-or-equals
        \ge ≥ greater-than-or-equals | \neq ≠ not-equals | \ne ≠ not-equals | \prec ≺ precedes
        \preceq ⪯ precedes-or-equals | \succ ≻ succeeds | \succeq ⪰ succeeds-or-equals | \ll ≪ much-less-than
        \gg ≫ much-greater-than | \subset ⊂ subset-of | \subseteq ⊆ subset-of-or-equals
        \sqsubset ⊏ square-image-of | \sqsubseteq ⊑ square-image-of-or-equals | \in ∈ element-of | \ni ∋ contains
        \owns ∋ contains | \supset ⊃ superset-of | \supseteq ⊇ superset-of-or-equals
        \sqsupset ⊐ square-original-of | \sqsupseteq ⊒ square-original-of-or-equals | \equiv ≡ equivalent-to
        \sim ∼ similar-to | \simeq ≃ similar-to-or-equals | \asymp ≍ asymptotically-equals
        \approx ≈ approximately-equals | \cong ≅ approximately-equals | \doteq ≐ approaches-limit
        \notin ∉ not-element-of | \models ⊧ models | \perp ⟂ perpendicular-to | \bowtie ⋈ | \Join ⋈ join | \smile ⌣
        \frown ⌢ | \propto ∝ proportional-to | \varpropto ∝ proportional-to | \leqq ≦ less-than-or-equals
        \leqslant ⩽ less-than-or-equals | \eqslantless ⪕ less-than-or-equals | \lesssim ≲ less-than-or-similar-to
        \lessapprox ⪅ less-than-or-approximately-equals | \approxeq ≊ approximately-equals-or-equals | \lessdot ⋖
        \lll ⋘ very-much-less-than | \llless ⋘ very-much-less-than | \lessgtr ≶ less-than-or-greater-than
        \lesseqgtr ⋚ less-than-or-equals-or-greater-than | \lesseqqgtr ⪋ less-than-or-equals-or-greater-than
        \doteqdot ≑ geometrically-equals | \Doteq ≑ geometrically-equals
        \risingdotseq ≓ image-of-or-approximately-equals | \fallingdotseq ≒ approximately-equals-or-image-of
        \backsim ∽ | \backsimeq ⋍ | \subseteqq ⫅ subset-of-or-equals | \Subset ⋐ double-subset-of
        \preccurlyeq ≼ precedes-or-equals | \curlyeqprec ⋞ equals-or-preceeds | \precsim ≾ precedes-or-equivalent-to
        \precapprox ⪷ precedes-or-approximately-equals | \vDash ⊨ | \Vvdash ⊪ | \smallsmile ⌣ | \smallfrown ⌢
        \bumpeq ≏ difference-between | \Bumpeq ≎ | \geqq ≧ greater-than-or-equals
        \geqslant ⩾ greater-than-or-equals | \eqslantgtr ⪖ greater-than-or-equals
        \gtrsim ≳ greater-than-or-equivalent-to | \gtrapprox ⪆ greater-than-or-approximately-equals | \eqsim ≂
        \gtrdot ⋗ | \ggg ⋙ very-much-greater-than | \gggtr ⋙ very-much-greater-than
        \gtrless ≷ greater-than-or-less-than | \gtreqless ⋛ greater-than-or-equals-or-less-than
        \gtreqqless ⪌ greater-than-or-equals-or-less-than | \eqcirc ≖ | \circeq ≗ | \triangleq ≜
        \thicksim ∼ similar-to | \thickapprox ≈ approximately-equals | \supseteqq ⫆ superset-of-or-equals
        \Supset ⋑ double-superset-of | \succcurlyeq ≽ succeeds-or-equals | \curlyeqsucc ⋟ equals-or-succeeds
        \succsim ≿ succeeds-or-equivalent-to | \succapprox ⪸ succeeds-or-approximately-equals | \Vdash ⊩ forces
        \shortmid ∣ divides | \shortparallel ∥ parallel-to | \between ≬ between | \pitchfork ⋔ proper-intersection
        \blacktriangleleft ◀ | \blacktriangleright ▶ | \backepsilon ϶ | \nless ≮ not-less-than
        \nleq ≰ not-less-than-nor-equals | \nleqslant ⩽̸ not-less-than-nor-equals
        \nleqq ≦̸ not-less-than-nor-equals | \lneq ⪇ less-than-and-not-equals | \lneqq ≨ less-than-and-not-equals
        \lvertneqq ≨ less-than-and-not-equals | \lnsim ⋦ less-than-and-not-equivalent-to
        \lnapprox ⪉ less-than-and-not-approximately-equals | \nprec ⊀ not-precedes
        \npreceq ⋠ not-precedes-nor-equals | \precneqq ⪵ precedes-and-not-equals
        \precnsim ⋨ precedes-and-not-equivalent-to | \precnapprox ⪹ precedes-and-not-approximately-equals
        \nsim ≁ not-similar-to | \nshortmid ∤ not-divides | \nmid ∤ not-divides | \nvdash ⊬ not-proves
        \nVdash ⊮ not-forces | \nvDash ⊭ | \nVDash ⊯ | \ntriangleleft ⋪ not-subgroup-of
        \ntrianglelefteq ⋬ not-subgroup-of-nor-equals | \nsubseteq ⊈ not-subset-of-nor-equals
        \nsubseteqq ⫅̸ not-subset-of-nor-equals | \subsetneq ⊊ subset-of-and-not-equals
        \varsubsetneq ⊊ subset-of-and-not-equals | \subsetneqq ⫋ subset-of-and-not-equals
        \varsubsetneqq ⫋ subset-of-and-not-equals | \supsetneq ⊋ superset-of-and-not-equals
        \varsupsetneq ⊋ superset-of-and-not-equals | \supsetneqq ⫌ superset-of-and-not-equals
        \varsupsetneqq ⫌ superset-of-and-not-equals | \ngtr ≯ not-greater-than | \ngeq ≱ not-greater-than-nor-equals
        \ngeqslant ⩾̸ not-greater-than-nor-equals | \ngeqq ≧̸ not-greater-than-nor-equals
        \gneq ⪈ greater-than-and-not-equals | \gneqq ≩ greater-than-and-not-equals
        \gvertneqq ≩ greater-than-and-not-equals | \gnsim ⋧ greater-than-and-not-equivalent-to
        \gnapprox ⪊ greater-than-and-not-approximately-equals | \nsucc ⊁ not-succeeds
        \nsucceq ⋡ not-succeeds-nor-equals | \succneqq ⪶ succeeds-and-not-equals
        \succnsim ⋩ succeeds-and-not-equivalent-to | \succnapprox ⪺ succeeds-and-not-approximately-equals
        \ncong ≇ not-approximately-equals | \nparallel ∦ not-parallel-to | \nshortparallel ∦ not-parallel-to
        \ntriangleright ⋫ not-contains-as-subgroup | \ntrianglerighteq ⋭ not-contains-as-subgroup-or-equals
        \nsupseteq ⊉ not-superset-of-nor-equals | \nsupseteqq ⫆̸ not-superset-of-nor-equals
        \vartriangleleft ⊲ subgroup-of | \vartriangleright ⊳ contains-as-subgroup
        \trianglelefteq ⊴ subgroup-of-or-equals | \trianglerighteq ⊵ contains-as-subgroup-or-equals
        \trianglelefteqslant ⊴ subgroup-of-or-equals | \coloneqq := assign | \coloneq := assign | \defeq := assign
        \eqqcolon =: | \relbar - | \Relbar =
    """,
    "ARROW": r"""
        \to → | \rightarrow → | \leftarrow ← | \gets ← | \Leftarrow ⇐ | \Rightarrow ⇒ | \mapsto ↦ maps-to
        \hookleftarrow ↩ | \hookrightarrow ↪ | \leftharpoonup ↼ | \leftharpoondown ↽ | \rightharpoonup ⇀
        \rightharpoondown ⇁ | \longleftarrow ⟵ | \Longleftarrow ⟸ | \longrightarrow ⟶ | \Longrightarrow ⟹
        \longmapsto ⟼ | \leadsto ↝ leads-to | \rightsquigarrow ⇝ | \uparrow ↑ | \Uparrow ⇑ | \downarrow ↓
        \Downarrow ⇓ | \updownarrow ↕ | \Updownarrow ⇕ | \nearrow ↗ | \searrow ↘ | \swarrow ↙ | \nwarrow ↖
        \implies ⟹ implies | \impliedby ⟸ implied-by | \leftleftarrows ⇇ | \leftrightarrows ⇆ | \Lleftarrow ⇚
        \twoheadleftarrow ↞ | \leftarrowtail ↢ | \looparrowleft ↫ | \curvearrowleft ↶ | \circlearrowleft ↺ | \Lsh ↰
        \upuparrows ⇈ | \downharpoonleft ⇃ | \multimap ⊸ | \rightrightarrows ⇉ | \rightleftarrows ⇄ | \Rrightarrow ⇛
        \twoheadrightarrow ↠ | \rightarrowtail ↣ | \looparrowright ↬ | \curvearrowright ↷ | \circlearrowright ↻
        \Rsh ↱ | \downdownarrows ⇊ | \downharpoonright ⇂ | \nleftarrow ↚ | \nrightarrow ↛ | \nLeftarrow ⇍
        \nRightarrow ⇏ | \nleftrightarrow ↮ | \nLeftrightarrow ⇎ | \dashrightarrow ⇢ | \dashleftarrow ⇠
        \leftrightsquigarrow ↭ | \upharpoonright ↾ | \upharpoonleft ↿ | \restriction ↾
    """,
    "METARELOP": r"""
        : : | \colon : | \vcentcolon : | \leftrightarrow ↔ | \Leftrightarrow ⇔ | \iff ⇔ iff | \rightleftharpoons ⇌
        \leftrightharpoons ⇋ | \longleftrightarrow ⟷ | \Longleftrightarrow ⟺ | \vdash ⊢ proves
        \dashv ⊣ does-not-prove | \therefore ∴ therefore | \because ∵ because
    """,
    "PUNCT": ", , | ; ;",
    "PERIOD": ". . | \\ldotp .",
    "POSTFIX": r"! ! factorial | !! !! double-factorial | \% % percent | % % percent",
    "SUPOP": r"\prime ′",
    "OPEN": r"""
        ( ( | [ [ | \{ { | \lbrace { | \lbrack [ | \lceil ⌈ | \lfloor ⌊ | \langle ⟨ | \lgroup ⟮ | \lvert BAR
        \lVert ∥ | \llbracket ⟦ | \ulcorner ⌜ | \llcorner ⌞ | \lmoustache ⎰ | \lparen ( | \lBrace ⦃
    """,
    "CLOSE": r"""
        ) ) | ] ] | \} } | \rbrace } | \rbrack ] | \rceil ⌉ | \rfloor ⌋ | \rangle ⟩ | \rgroup ⟯ | \rvert BAR
        \rVert ∥ | \rrbracket ⟧ | \urcorner ⌝ | \lrcorner ⌟ | \rmoustache ⎱ | \rparen ) | \rBrace ⦄
    """,
    "VERTBAR": r"\vert BAR | \| ∥ | \Vert ∥ | \mid ∣ | \parallel ∥ parallel-to | \bracevert BAR",
    "MODIFIEROP": r"\bmod mod modulo",
}

LIMITS_IN_DISPLAY = frozenset((r"\gcd", r"\max", r"\min", r"\Pr"))
"""Functions whose scripts go under and over them in a display."""

_NAMES = {"⟨": "langle", "⟩": "rangle"}


def _entries(table: str) -> list[list[str]]:
    return [entry.split() for line in table.splitlines() for entry in line.split(" | ") if entry.strip()]


def _read_tables() -> dict[str, Token]:
    tokens: dict[str, Token] = {}
    for heading, table in _TABLES.items():
        role = heading.strip()
        for command, *rest in _entries(table):
            text = rest[0] if rest else "="
            if text == "=" and command[0] == "\\" and command != r"\Relbar":
                text = command[1:]
            elif text == "BAR":
                text = "|"
            meaning = rest[1] if len(rest) > 1 else ""
            name = _NAMES.get(text, "")
            tokens[command] = symbol(role, text.replace("&", " ") if len(text) > 1 else text, meaning, name=name)
    tokens["|"] = tokens[r"\vert"]
    for command in (r"\lVert", r"\rVert"):
        tokens[command].name = command[1:]
    return tokens


SYMBOLS: dict[str, Token] = _read_tables()
"""Token by command or character, letters included."""

LETTERS = {letter: symbol("UNKNOWN", letter) for letter in map(chr, [*range(65, 91), *range(97, 123)])}
SYMBOLS.update(LETTERS)

ABSENT = Token("ATOM", "", "W!", "W!", name="absent")
"""Missing operand: the left-hand side of ``= x``."""
INVISIBLE_TIMES = Token("MULOP", "\u2062", "", opt_label("times"), name="times")
INVISIBLE_PLUS = Token("ADDOP", "\u2064", "", opt_label("plus"), name="plus")
INVISIBLE_COMMA = Token("PUNCT", "\u2063", "", "V!")
SPACE = Token("PUNCT", "", "", "W!")
"""A wide space: it separates the elements of a list."""
CONDITIONAL = opt_label("conditional")

ACCENTS: dict[str, tuple[Token, bool]] = {
    command: (symbol("ACCENT", mark), over)
    for over, table in (
        (
            True,
            r"""\hat ^ | \check ˇ | \breve ˘ | \acute ´ | \grave ` | \tilde ~ | \bar ¯ | \vec → | \dot ˙ | \ddot ¨
            \dddot ˙˙˙ | \ddddot ˙˙˙˙ | \mathring ˚ | \widehat ^ | \widetilde ~ | \overline ¯ | \overrightarrow →
            \overleftarrow ← | \overleftrightarrow ↔ | \overbrace ⏞ | \widecheck ˇ | \overparen ⏜ | \overarc ⏜
            \Hat ^ | \Check ˇ | \Breve ˘ | \Acute ´ | \Grave ` | \Tilde ~ | \Bar ¯ | \Vec → | \Dot ˙ | \Ddot ¨
            \overbracket ⎴ | \wideparen ⏜""",
        ),
        (
            False,
            r"""\underline ¯ | \underbar ¯ | \underbrace ⏟ | \underrightarrow → | \underleftarrow ←
            \underleftrightarrow ↔ | \underbracket ⎵ | \utilde ~""",
        ),
    )
    for command, mark in _entries(table)
}
"""Accents and braces by command: the mark, and whether it goes over its base or under it."""

LIMIT_ACCENTS = frozenset((r"\overbrace", r"\underbrace", r"\overbracket", r"\underbracket"))
"""Accents whose own scripts go over and under them."""

NEGATIONS = dict(zip("=<>∈≤≥≺≻⪯⪰⊂⊃⊆⊇⊑⊐≡≍≈⊲⊳⊴⊵∃∣∥∼≅", "≠≮≯∉≰≱⊀⊁⋠⋡⊄⊅⊈⊉⋢⋣≢≭≉⋪⋫⋬⋭∄∤∦≁≇", strict=True))
r"""Negated character by character, for ``\not``; others get a stroke."""

SPACES = {
    r"\,": 1.667, r"\thinspace": 1.667, r"\!": -1.667, r"\negthinspace": -1.667, r"\:": 2.222, r"\>": 2.222,
    r"\medspace": 2.222, r"\;": 2.778, r"\thickspace": 2.778, "\\ ": 5.0, r"\space": 5.0, "~": 3.333,
    r"\nobreakspace": 3.333, r"\enspace": 5.0, r"\enskip": 5.0, r"\quad": 10.0, r"\qquad": 20.0,
    "\\\n": 5.0, "\\\t": 5.0, "\\\r": 5.0, r"\negmedspace": -2.222, r"\negthickspace": -2.778,
}  # fmt: skip
"""Width of a space in points, at ten points an em."""

WIDE = 10.0
"""A space of this width, or several that add up to it, separates like a comma."""
