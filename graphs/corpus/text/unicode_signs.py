r"""Unicode signs in formulas of plain text, as the LaTeX commands that they stand for.

>>> as_commands("x² ≤ √(y+1)")
'x^{2} \\le \\sqrt{y+1}'
>>> as_commands("a₁₂ ∈ ℝ, ½ ⊄ 𝑥")
'a_{12} \\in \\mathbb{R}, \\frac{1}{2} \\not\\subset x'

People type ``≤`` and ``x²`` in notes and queries, and write ``\le`` and ``x^2`` in papers. Posts in which a collection
marks formulas stay as they are, since published trees have these signs as variables.
"""

from __future__ import annotations

import re
import unicodedata

_TABLE = r"""
α\alpha β\beta γ\gamma δ\delta ϵ\epsilon ε\varepsilon ζ\zeta η\eta θ\theta ϑ\vartheta ι\iota κ\kappa λ\lambda μ\mu ν\nu
ξ\xi π\pi ρ\rho σ\sigma ς\varsigma τ\tau υ\upsilon ϕ\phi φ\varphi χ\chi ψ\psi ω\omega Γ\Gamma Δ\Delta Θ\Theta Λ\Lambda
Ξ\Xi Π\Pi Σ\Sigma Υ\Upsilon Φ\Phi Ψ\Psi Ω\Omega ℵ\aleph ℓ\ell ∠\angle □\Box △\triangle ∁\complement ∞\infty ∅\emptyset
ℏ\hbar …\ldots ⋯\cdots ⋮\vdots ⋱\ddots ℜ\Re ℑ\Im ∑\sum ∏\prod ∐\coprod ⋂\bigcap ⋃\bigcup ⋁\bigvee ⋀\bigwedge
⨂\bigotimes ⨁\bigoplus ∫\int ∮\oint ∬\iint ∭\iiint ∀\forall ∃\exists ∄\nexists ∂\partial ∇\nabla ¬\neg ±\pm ∓\mp ∩\cap
∪\cup ⊔\sqcup ⊓\sqcap ∨\vee ∧\wedge ∖\setminus ⊕\oplus ⊖\ominus ⊗\otimes ⊙\odot ⊤\top ⊥\bot ×\times ÷\div ∗\ast ⋆\star
∘\circ ∙\bullet ⋅\cdot ≀\wr †\dagger ⋉\ltimes ⋊\rtimes ≤\le ≥\ge ≠\ne ≺\prec ⪯\preceq ≻\succ ⪰\succeq ≪\ll ≫\gg ⊂\subset
⊆\subseteq ⊑\sqsubseteq ⊃\supset ⊇\supseteq ⊊\subsetneq ⊋\supsetneq ∈\in ∋\ni ∉\notin ≡\equiv ∼\sim ≃\simeq ≈\approx
≅\cong ≍\asymp ≐\doteq ⟂\perp ∝\propto ⩽\leqslant ⩾\geqslant ≲\lesssim ≳\gtrsim ≼\preccurlyeq ≽\succcurlyeq ≜\triangleq
⊨\vDash ⊩\Vdash ⊢\vdash ⊣\dashv ∣\mid ∥\parallel ⊲\triangleleft ⊴\trianglelefteq →\to ←\leftarrow ⇐\Leftarrow
⇒\Rightarrow ↦\mapsto ↪\hookrightarrow ⟶\longrightarrow ⟹\Longrightarrow ⟸\Longleftarrow ⇝\rightsquigarrow ↑\uparrow
↓\downarrow ↠\twoheadrightarrow ↣\rightarrowtail ↔\leftrightarrow ⇔\iff ⟺\Longleftrightarrow ⇌\rightleftharpoons
∴\therefore ∵\because ⌈\lceil ⌉\rceil ⌊\lfloor ⌋\rfloor ⟨\langle ⟩\rangle ⟦\llbracket ⟧\rrbracket
−- –- ·\cdot •\bullet ‖\| ∆\Delta µ\mu ∶: ∕/ ⁄/ ≔:= ′' ’' ″'' °^\circ
"""
COMMANDS = {entry[0]: entry[1:] for entry in _TABLE.split()}
"""Sign -> its LaTeX."""
_END = "\0"  # of a command: a space before a letter

_SCRIPTS = {"^": "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁱⁿᵀᵃᵇᵈᵏᵐᵖʳˢᵗˣʸᶻ", "_": "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ"}
_STYLES = {
    "DOUBLE-STRUCK": r"\mathbb",
    "FRAKTUR": r"\mathfrak",
    "SCRIPT": r"\mathcal",
    "BOLD": r"\mathbf",
    "ITALIC": "",
    "PLANCK": "",  # the italic h
}
_INNER = r"[^()]{0,500}(?:\([^()]{0,500}\)[^()]{0,500}){0,20}"  # with parentheses in it
_ROOT = re.compile(rf"√\s*(?:\((?P<sum>{_INNER})\)|(?P<number>\d+(?:\.\d+)?))")
_RAISED, _LOWERED = rf"(?:[{_SCRIPTS['^']}]+|[°′″])", rf"[{_SCRIPTS['_']}]+"
_DOUBLE = re.compile(rf"\^(\{{)?(?P<up>{_RAISED})(?(1)\}})|_(\{{)?(?P<down>{_LOWERED})(?(3)\}})")  # 90^°, x_{₁}
_SIGN = re.compile(
    r"(?P<text>\\(?:text[a-z]*|mbox|hbox|operatorname)\*?\s*\{[^{}]*\})"
    rf"|[{_SCRIPTS['^']}]+|[{_SCRIPTS['_']}]+|[^\x00-\x7f]"
)


def as_commands(latex: str) -> str:
    """Return a formula with LaTeX commands in place of Unicode signs, except in ``\\text{..}``; others stay."""
    if latex.isascii():
        return latex
    latex = _ROOT.sub(lambda root: rf"\sqrt{{{root['sum'] or root['number']}}}", latex).replace("√", r"\sqrt" + _END)
    latex = _SIGN.sub(_command, _DOUBLE.sub(lambda double: double["up"] or double["down"], latex))
    return re.sub(f"{_END}(?=[A-Za-z])", " ", latex).replace(_END, "")


def _command(match: re.Match[str]) -> str:
    sign = match.group()
    if match["text"]:
        return sign
    if sign in COMMANDS:
        command = COMMANDS[sign]
        return command + _END if command[-1].isalpha() else command
    plain = unicodedata.normalize("NFKC", sign)
    for mark, scripts in _SCRIPTS.items():
        if sign[0] in scripts:
            return f"{mark}{{{plain.replace('−', '-')}}}"
    style = next((command for name, command in _STYLES.items() if name in unicodedata.name(sign, "")), None)
    letter = COMMANDS.get(plain, plain)
    if style is not None and letter.isascii():
        return f"{style}{{{letter}}}" if style else letter + _END if plain in COMMANDS else letter
    if re.fullmatch(r"\d+⁄\d+", plain):  # ½
        return r"\frac{{{}}}{{{}}}".format(*plain.split("⁄"))
    base = unicodedata.normalize("NFD", sign)
    return rf"\not{COMMANDS.get(base[0], base[0])}{_END}" if base[1:] == "\u0338" else sign
