"""Derive the lexicon of the embedded AMR parser (frames.json) from the AMR lists and from gold graphs.

    python scripts/development/derive_amr_frames.py --data ../shared/data/amr --out graphs/amr/embedded/frames.json

Reads ``propbank-amr-frames-arg-descr.txt``, ``verbalization-list-v1.06.txt``, ``morph-verbalization-v1.01.txt`` and the
gold graphs of ``little-prince-train.txt`` and ``bio-train.txt`` (all from amr.isi.edu); the development sets are not
read. The output has the first sense of each lemma with its roles, nouns that express verbs, and the most frequent
concept of each word of the gold sentences. The lists themselves are not copied. graphs/amr/embedded/lexicon.py
describes the form of the file.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import penman

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from graphs.amr.embedded import EmbeddedParser
from graphs.amr.embedded.lexicon import Lexicon, Link
from graphs.amr.penman_text import blocks, decode

FRAMES = "propbank-amr-frames-arg-descr.txt"
VERBALIZATIONS, MORPHOLOGY = "verbalization-list-v1.06.txt", "morph-verbalization-v1.01.txt"
GOLD = ("little-prince-train.txt", "bio-train.txt")
LEFT_OUT = re.compile(r":(op|snt|prep|name|domain-of)")  # roles that say more of other words than of the two

# Prepositions that go with a role, by words of the role's description; the first that fits.
PREPOSITIONS = [
    ("to", r"\bto wh(?:om|at)|recipient|hearer|listener|destination|end ?point|given.to|\bgoal\b|goes to|, to\b"),
    ("from", r"\bsource|start ?point|start state|from (?:what|whom|where)|\bfrom\b|origin"),
    ("into", r"end ?state|\bproduct\b|into what|\bresult\b"),
    ("with", r"\bwith (?:what|whom)|co-|other side|second part|\bpartner|instrument"),
    ("on", r"\bon (?:what|whom)|depended on|\bbasis\b|ground"),
    ("about", r"\btopic|about|subject matter"),
    ("as", r"attribute|described.as|predicate|secondary"),
    ("for", r"benefactive|beneficiary|\breason\b|\bprice|for what"),
    ("of", r"\bof what"),
]  # fmt: skip


def read_frames(path: Path) -> dict[str, dict[str, dict[int, str]]]:
    """Lemma -> sense -> {number of ARG: description}."""
    frames: dict[str, dict[str, dict[int, str]]] = defaultdict(dict)
    for line in path.read_text(encoding="utf-8").splitlines():
        match = re.match(r"(\S+)-(\d+)\s+(.*)", line)
        if match:
            roles = re.findall(r"ARG(\d): (.*?)(?=  ARG|$)", match[3])
            frames[match[1]][match[2]] = {int(number): text for number, text in roles}
    return frames


def read_verbalizations(path: Path) -> tuple[dict[str, str], set[str]]:
    """Word -> ``frame`` or ``concept<ARG0-of<frame`` (``!`` at the end of a negated one), and the words to leave."""
    found: dict[str, str] = {}
    leave: set[str] = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        match = re.match(r"(\S+) (\S+) TO (.*?)\s*$", line)
        if not match:
            continue
        if match[1] != "VERBALIZE":
            leave.add(match[2])
            continue
        plain = re.fullmatch(r"(\S+-\d\d)( :polarity -)?", match[3])
        nested = re.fullmatch(r"(\S+) :(ARG\d)-of (\S+-\d\d)", match[3])
        if plain:
            found.setdefault(match[2], plain[1] + ("!" if plain[2] else ""))
        elif nested:
            found.setdefault(match[2], f"{nested[1]}<{nested[2]}<{nested[3]}")
    return found, leave


def read_morphology(path: Path) -> tuple[dict[str, str], dict[str, str], set[str]]:
    """Noun -> verb, actor noun -> verb, and all the verbs."""
    nouns: dict[str, str] = {}
    actors: dict[str, str] = {}
    verbs: set[str] = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        words = dict(re.findall(r'::(DERIV-[A-Z-]+) "([^"]+)"', line))
        if (verb := words.get("DERIV-VERB")) is not None:
            verbs.add(verb)
            for name, found in (("DERIV-NOUN", nouns), ("DERIV-NOUN-ACTOR", actors)):
                if name in words:
                    found.setdefault(words[name], verb)
    return nouns, actors, verbs


def first_sense(senses: dict[str, dict[int, str]], *, agent: bool) -> str:
    """Return the lowest sense with an agent (without ``agent``, the lowest without one); ``""`` without one."""
    return next((s for s in sorted(senses) if s < "90" and senses[s] and (0 in senses[s]) == agent), "")


def any_sense(senses: dict[str, dict[int, str]]) -> str:
    """Return the lowest sense with an agent, or else the lowest one."""
    return first_sense(senses, agent=True) or first_sense(senses, agent=False)


def coded(sense: str, roles: dict[int, str]) -> str:
    """``02:012:to2,from3``: the sense, the numbers of its roles, and prepositions that go with them."""
    hints: dict[str, int] = {}
    for number in sorted(roles):
        if number >= 1:
            for preposition, pattern in PREPOSITIONS:
                if preposition not in hints and re.search(pattern, roles[number], re.IGNORECASE):
                    hints[preposition] = number
                    break
    text = f"{sense}:{''.join(str(n) for n in sorted(roles))}"
    return text + (":" + ",".join(f"{p}{n}" for p, n in hints.items()) if hints else "")


def gold_graphs(paths: Iterable[Path]) -> Iterator[tuple[str, penman.Graph]]:
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            for block in blocks(lines):
                sentence = re.sub(r"<[^>]+>", "", block.metadata.get("snt", ""))
                if sentence and block.text:
                    yield sentence, decode(block.text)


def nouns_of(data: Path, frames: dict[str, dict[str, dict[int, str]]]) -> dict[str, str]:
    """``"solution N": "solve-01"``, ``"happy J": "happy-01"``: words that are not verbs and stand for a frame."""
    verbalized, leave = read_verbalizations(data / VERBALIZATIONS)
    nouns, actors, _ = read_morphology(data / MORPHOLOGY)

    def frame_of(verb: str) -> str:
        return f"{verb}-{any_sense(frames.get(verb, {})) or '01'}"

    found: dict[str, str] = {}
    for noun, verb in actors.items():
        if noun not in leave and verb in frames and noun.endswith(("er", "or")):
            found[f"{noun} N"] = f"person<ARG0-of<{frame_of(verb)}"
    for noun, verb in nouns.items():
        if noun not in leave and verb in frames and noun != verb:
            found[f"{noun} N"] = frame_of(verb)
    for word, pattern in verbalized.items():
        for word_class in "NJ" if "<" not in pattern else "N":
            found[f"{word} {word_class}"] = pattern
    return found


def adjectives_of(data: Path, frames: dict[str, dict[str, dict[int, str]]], nouns: dict[str, str]) -> dict[str, str]:
    """``"sure": "02"``: the first sense without an agent, or the first sense of what is no verb."""
    verbs = read_morphology(data / MORPHOLOGY)[2]
    found: dict[str, str] = {}
    for lemma, senses in frames.items():
        adjective = first_sense(senses, agent=False) or ("" if lemma in verbs else first_sense(senses, agent=True))
        plain = re.fullmatch(r"[a-z]+", lemma) and f"{lemma} J" not in nouns
        if adjective and plain and not (lemma in verbs and adjective == "01"):
            found[lemma] = adjective
    return found


def candidates(lemma: str, lower: str, tables: dict[str, dict[str, str]]) -> set[str]:
    """Return names of concepts for a word, without sense."""
    found = {lemma.replace(" ", "-"), lower}
    for table_class in "NJ":
        known = tables["nouns"].get(f"{lemma} {table_class}")
        if known:
            found.add(known.rstrip("!").rsplit("<", 1)[-1][:-3])
    if lower.endswith("ly"):
        found |= {lower[:-2], lower[:-1] + "e", lower[:-3] + "y"}
    for ending in ("ed", "ing", "ful", "ness", "ity", "y", "less", "er", "or", "ion", "ation", "ment", "al"):
        if lemma.endswith(ending) and len(lemma) > len(ending) + 2:
            stem = lemma[: -len(ending)]
            found |= {stem, stem + "e"}
    return found


def concept_below(graph: penman.Graph, frame: str) -> str:
    """``person<ARG0-of<frame`` where the graph has the frame below a person or thing, else the frame."""
    concepts = {source: target for source, role, target in graph.triples if role == ":instance"}
    for source, role, target in graph.triples:
        if role.startswith(":ARG") and concepts[source] == frame and concepts.get(target) in ("person", "thing"):
            return f"{concepts[target]}<{role[1:]}-of<{frame}"
    return frame


def count_words(
    parser: EmbeddedParser, gold: list[tuple[str, penman.Graph]], tables: dict[str, dict[str, str]]
) -> dict[str, str]:
    """Return the most frequent concept of each lemma of a word class."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for (draft, _), (_, graph) in zip(parser.drafts(sentence for sentence, _ in gold), gold, strict=True):
        concepts = Counter(target for _, role, target in graph.triples if role == ":instance")
        by_name: dict[str, list[str]] = defaultdict(list)
        for concept in concepts:
            by_name[re.sub(r"-\d\d$", "", concept)].append(concept)
        for token in draft.tokens:
            is_auxiliary = token.lower in ("be", "'s") or token.dep in ("aux", "auxpass")
            if not token.word_class or token.pos == "PROPN" or is_auxiliary:
                continue
            matched = [c for stem in candidates(token.lemma, token.lower, tables) for c in by_name.get(stem, ())]
            concept = min(matched, key=lambda c: (-concepts[c], c), default="")
            if token.word_class == "N" and re.search(r"-\d\d$", concept):
                concept = concept_below(graph, concept)
            counts[f"{token.lemma} {token.word_class}"][concept] += 1
    words = {}
    for key, counter in counts.items():
        if not re.fullmatch(r"[a-z]+(?:[ -][a-z]+)* [VNJR]", key):
            continue
        total, found = counter.total(), counter.total() - counter[""]
        if found and found >= 0.3 * total:
            counter[""] = 0
            words[key] = max(counter, key=lambda c: (counter[c], c))
        elif key.endswith(" R") and total >= 4:
            words[key] = ""
    return words


def count_roles(parser: EmbeddedParser, gold: list[tuple[str, penman.Graph]]) -> dict[str, str]:
    """Return the most frequent role of each kind of dependency whose words are both in the gold graph."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    links: set[Link] = set()
    for (draft, _), (_, graph) in zip(parser.drafts(sentence for sentence, _ in gold), gold, strict=True):
        variables: dict[str, list[str]] = defaultdict(list)
        for source, role, target in graph.triples:
            if role == ":instance":
                variables[target].append(source)
        edges: dict[tuple[str, str], str] = {}
        for source, role, target in graph.triples:
            edges.setdefault((source, target), role)
            edges.setdefault((target, source), role + "-of")
        for head, child, link in draft.links:
            links.add(link)
            found = {
                edges[a, b]
                for a in variables.get(draft.concepts[head], ())
                for b in variables.get(draft.concepts[child], ())
                if (a, b) in edges
            }
            if len(found) == 1 and not LEFT_OUT.match(next(iter(found))):
                for key in link.backoff():
                    counts[key][next(iter(found))] += 1
    roles: dict[str, str] = {}
    for key, counter in sorted(counts.items()):
        if ";" in key:
            continue
        role, count = max(counter.items(), key=lambda pair: (pair[1], pair[0]))
        total = counter.total()
        if (count >= 2 and count >= 0.5 * total) or (count >= 8 and count >= 0.35 * total):
            roles[key] = role
    # A key that says what the more general keys say is not needed.
    backoffs = [list(link.backoff()) for link in links]
    for level in range(6):
        at_level = [keys[level:] for keys in backoffs if level < len(keys)]
        needed = {
            key
            for key, *general in at_level
            if roles.get(key) != next((roles[other] for other in general if other in roles), None)
        }
        for key in {key for key, *_ in at_level} - needed:
            roles.pop(key, None)
    return roles


def inverted(table: dict[str, str]) -> dict[str, str]:
    """Value -> its keys, joined by ``;``."""
    keys: dict[str, list[str]] = defaultdict(list)
    for key, value in sorted(table.items()):
        keys[value].append(key)
    return {value: ";".join(found) for value, found in sorted(keys.items())}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--data", type=Path, required=True, help="folder with the AMR lists and gold graphs")
    arguments.add_argument("--out", type=Path, default=Path("graphs/amr/embedded/frames.json"))
    options = arguments.parse_args()
    frames = read_frames(options.data / FRAMES)
    verbs = {}
    for lemma, senses in frames.items():
        if sense := any_sense(senses):
            verbs[lemma.replace("-", " ")] = coded(sense, senses[sense])
    nouns = nouns_of(options.data, frames)
    adjectives = adjectives_of(options.data, frames, nouns)
    tables: dict[str, dict[str, str]] = {"verbs": verbs, "adjectives": adjectives, "nouns": nouns}
    tables |= {"words": {}, "roles": {}}
    gold = list(gold_graphs(options.data / file for file in GOLD))
    tables["words"] = count_words(EmbeddedParser(lexicon=Lexicon(tables)), gold, tables)
    tables["roles"] = count_roles(EmbeddedParser(lexicon=Lexicon(tables)), gold)
    plain = Lexicon({**tables, "words": {}})
    tables["words"] = {
        key: concept for key, concept in tables["words"].items() if plain.concept(*key.rsplit(" ", 1)) != concept
    }
    text = json.dumps({name: inverted(table) for name, table in tables.items()}, indent=0, ensure_ascii=False)
    options.out.write_text(text + "\n", encoding="utf-8")
    sizes = ", ".join(f"{len(table)} {name}" for name, table in tables.items())
    print(f"{options.out}: {sizes}; {len(text.encode()):,} bytes, from {len(gold)} gold graphs")


if __name__ == "__main__":
    main()
