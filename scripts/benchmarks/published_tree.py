r"""A generated ARQMath of any size, with the files, names, ids and sizes of the published one, in constant memory.

    python scripts/bench.py published_scale --posts 100000 --keep published

Sizes are drawn from distributions measured on arqmath-mini (2,331 questions and 2,863 answers of the published posts).
The numbers are mean and standard deviation of natural logarithms, unless the line says otherwise:

- text of a body without formulas, in characters: 5.900 and 0.903 (questions), 5.898 and 1.237 (answers)
- formulas in a body of t characters, if any: 0.639 log t - 2.230 and 0.767; 0.599 log t - 1.571 and 0.763
- share of bodies without formulas: 0.122 and 0.097; formulas in a title: 0.70 on average
- LaTeX of a formula: 21.3 characters on average; Presentation MathML 336; Content MathML 339; 745 in 50,714 have none

The rest follows published totals: 1.1 million questions to 1.4 million answers, 491,000 accepted answers, ids with gaps
up to 3 million, 29 MB of links. Formulas are drawn from 3,000 different ones. The same seed writes the same tree.
"""

from __future__ import annotations

import io
import math
import random
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO

HEADER = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\n"
XMLNS = 'xmlns=""http://www.w3.org/1998/Math/MathML""'
REPRESENTATIONS = ("latex", "opt", "slt")
TABLES = 101
NAMELESS = 15 / 5194  # posts whose formula spans have lost their ids, measured on arqmath-mini
WINDOW = 500  # threads whose posts are shuffled among each other
KEPT = 30_000  # number of answers and formulas to draw judgments from
#: year: topics of Task 1 and 2, and those of them in the official judgments
TOPICS = {2020: (98, 85, 77, 45), 2021: (100, 100, 71, 58), 2022: (100, 100, 78, 76)}


WORDS = """the of is a that to and we in for this have as be if are it with on by not i can so an which then let from
or you but how function any there prove all number set since where proof show some has sum limit integral one know real
continuous matrix group space series would find question use point solution theorem get my converges at positive every
true vector ring field linear values case example finite following need also polynomial equation map order open bounded
prime integer derivative well only answer problem between such exists subset first operator basis complex closed
probability measure compact topology sequence root module ideal kernel graph think defined definition both two given
means just more equal could zero side follows hence assume implies conclude"""


@dataclass(frozen=True, slots=True)
class Formula:
    """Formula in three representations, as the TSVs quote them, and its visual id."""

    visual_id: int
    latex: str
    opt: str
    slt: str


def formula_pool(choose: random.Random) -> list[Formula]:
    """Return 3,000 different formulas, of sizes like the published ones'."""
    pool: dict[str, Formula] = {}
    while len(pool) < 3000:
        leaves = min(round(math.exp(choose.gauss(0.85, 0.95))), 60) or 1
        latex, opt, slt = _expression(choose, leaves)
        if latex not in pool:
            layout = f'<math alttext=""{latex}"" class=""ltx_Math"" display=""inline"" {XMLNS}>'
            layout = f'"{layout}<semantics>{slt}</semantics></math>"'
            content = opt.replace("<apply>", f"<apply {XMLNS}>", 1)
            content = "" if choose.random() < 745 / 50_714 else f'"<math {XMLNS}>{content}</math>"'
            pool[latex] = Formula(choose.randrange(1, 9_000_000), latex, content, layout)
    return list(pool.values())


def _expression(choose: random.Random, leaves: int) -> tuple[str, str, str]:
    """Return a random expression as LaTeX, Content MathML and Presentation MathML."""
    if leaves == 1:
        if choose.random() < 0.3:
            number = str(choose.randrange(1000))
            return number, f'<cn type=""integer"">{number}</cn>', f"<mn>{number}</mn>"
        letter = choose.choice("abcdefghijklmnopqrstuvwxyzABCDEFGHKLMNPQRSTUVXYZ")
        return letter, f"<ci>{letter}</ci>", f"<mi>{letter}</mi>"
    first = choose.randrange(1, leaves)
    (a, a_opt, a_slt), (b, b_opt, b_slt) = _expression(choose, first), _expression(choose, leaves - first)
    kind = choose.randrange(5)
    if kind == 0:
        content = f'<apply><csymbol cd=""ambiguous"">superscript</csymbol>{a_opt}{b_opt}</apply>'
        return f"{{{a}}}^{{{b}}}", content, f"<msup><mrow>{a_slt}</mrow><mrow>{b_slt}</mrow></msup>"
    if kind == 1:
        content = f"<apply><divide/>{a_opt}{b_opt}</apply>"
        return rf"\frac{{{a}}}{{{b}}}", content, f"<mfrac><mrow>{a_slt}</mrow><mrow>{b_slt}</mrow></mfrac>"
    sign, name = (("+", "plus"), ("=", "eq"), ("-", "minus"))[kind - 2]
    return f"{a}{sign}{b}", f"<apply><{name}/>{a_opt}{b_opt}</apply>", f"<mrow>{a_slt}<mo>{sign}</mo>{b_slt}</mrow>"


class _Sample:
    """Uniform sample of a stream (reservoir sampling), of :data:`KEPT` items."""

    def __init__(self, choose: random.Random) -> None:
        self._choose, self._seen = choose, 0
        self.items: list[int] = []

    def add(self, item: int) -> None:
        self._seen += 1
        if len(self.items) < KEPT:
            self.items.append(item)
        elif (at := self._choose.randrange(self._seen)) < KEPT:
            self.items[at] = item


class _Zip:
    """Zip whose members are written one after the other, as text."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self._member: IO[str] | None = None

    def begin(self, name: str) -> None:
        self._end()
        info = zipfile.ZipInfo(name)  # without today's date: the same seed writes the same bytes
        info.compress_type = zipfile.ZIP_DEFLATED
        self._member = io.TextIOWrapper(self._archive.open(info, "w", force_zip64=True), encoding="utf-8", newline="")

    def write(self, text: str) -> None:
        assert self._member is not None
        self._member.write(text)

    def _end(self) -> None:
        if self._member is not None:
            self._member.close()

    def close(self) -> None:
        self._end()
        self._archive.close()


class Tree:
    """Writer of a published tree of ``posts`` posts into ``out``; ``counts`` has the numbers written."""

    def __init__(self, out: Path, posts: int, seed: int = 0) -> None:
        self.out, self.posts = out, posts
        self.counts: Counter[str] = Counter()
        self._choose = random.Random(seed)
        self._pool = formula_pool(self._choose)
        known = WORDS.split()
        words = self._choose.choices(known, weights=[1 / (i + 1) for i in range(len(known))], k=100_000)
        self._text = "".join(f"{word}. " if self._choose.random() < 1 / 15 else f"{word} " for word in words)
        self._answers, self._formulas, self._visual_ids = (_Sample(self._choose) for _ in range(3))
        self._next_formula = 1
        self._post_id = 0

    def write(self, progress: Callable[[int], None] = lambda count: None) -> Counter[str]:
        """Write every file; ``progress`` is called with numbers of posts."""
        collection = self.out / "Collection"
        with ExitStack() as files:
            posts = files.enter_context(closing(_Zip(collection / "Posts.V1.3.zip")))
            tables = [
                files.enter_context(closing(_Zip(self.out / "Formulas" / f"{name}_representation_v3.zip")))
                for name in REPRESENTATIONS
            ]
            links = files.enter_context((collection / "PostLinks.V1.3.xml").open("w", encoding="utf-8"))
            posts.begin("Posts.V1.3.xml")
            posts.write('<?xml version="1.0" encoding="utf-8"?>\n<posts>\n')
            links.write('<?xml version="1.0" encoding="utf-8"?>\n<postlinks>\n')
            self._begin_table(tables, 1)
            done, table = 0, 1
            while done < self.posts:
                rows, formulas, linked = self._window(self.posts - done)
                posts.write("".join(rows))
                links.write("".join(linked))
                for archive, column in zip(tables, formulas, strict=True):
                    archive.write("".join(column))
                done += len(rows)
                progress(len(rows))
                while table < TABLES and done * TABLES >= table * self.posts:
                    table += 1
                    self._begin_table(tables, table)
            posts.write("</posts>\n")
            links.write("</postlinks>\n")
        for year in TOPICS:
            self._topics(year)
            self._judgments(year)
        return self.counts

    def _begin_table(self, tables: list[_Zip], number: int) -> None:
        for name, archive in zip(REPRESENTATIONS, tables, strict=True):
            archive.begin(f"{name}_representation_v3/{number}.tsv")
            archive.write(HEADER)

    # -- posts -------------------------------------------------------------------------------------------------------

    def _window(self, most: int) -> tuple[list[str], tuple[list[str], ...], list[str]]:
        """Return rows of the posts, of the three kinds of tables, and of links, of some threads, ordered by id."""
        choose = self._choose
        events: list[tuple[float, int, bool]] = []
        for thread in range(WINDOW):
            answers = min(int(choose.expovariate(1 / 1.75)), 30)
            events.append((thread, thread, True))
            events += [(thread + choose.expovariate(1 / 20), thread, False) for _ in range(answers)]
        events = sorted(events)[:most]
        ids = []
        for _ in events:
            self._post_id += 1 if choose.random() < 0.8 else 2
            ids.append(self._post_id)
        question = {thread: id_ for id_, (_, thread, first) in zip(ids, events, strict=True) if first}
        accepted: dict[int, int] = {}
        for id_, (_, thread, first) in zip(ids, events, strict=True):
            if not first and thread not in accepted and choose.random() < 0.6:
                accepted[thread] = id_
        rows: list[str] = []
        formulas: tuple[list[str], ...] = ([], [], [])
        links: list[str] = []
        for id_, (_, thread, first) in zip(ids, events, strict=True):
            rows.append(self._row(id_, question[thread], first, accepted.get(thread), formulas))
            if first and choose.random() < 0.24 and id_ > 10:
                self.counts["links"] += 1
                related, kind = choose.choice(list(question.values())), 3 if choose.random() < 0.15 else 1
                links.append(
                    f'  <row Id="{self.counts["links"]}" CreationDate="2012-07-20T19:21:14.580" PostId="{id_}" '
                    f'RelatedPostId="{related}" LinkTypeId="{kind}" />\n'
                )
        return rows, formulas, links

    def _row(self, id_: int, thread: int, first: bool, accepted: int | None, formulas: tuple[list[str], ...]) -> str:
        choose = self._choose
        kind, mean, sd, slope, shift, none = (
            ("question", 5.900, 0.903, 0.639, -2.230, 0.122)
            if first
            else ("answer", 5.898, 1.237, 0.599, -1.571, 0.097)
        )
        length = min(math.exp(choose.gauss(mean, sd)), 60_000)
        count = 0
        if choose.random() >= none:
            count = max(1, min(round(math.exp(choose.gauss(slope * math.log(length) + shift, 0.765))), 600))
        body = f"&lt;p&gt;{self._markup(int(length), count, id_, thread, kind, formulas)}&lt;/p&gt;"
        dates = 'CreationDate="2011-03-04T10:20:30.400"'
        self.counts[f"posts.{kind}"] += 1
        self.counts["posts.with_formulas"] += count > 0
        if not first:
            self._answers.add(id_)
            return (
                f'  <row Id="{id_}" PostTypeId="2" {dates} Score="{choose.randrange(9)}" ParentId="{thread}" '
                f'Body="{body}" OwnerUserId="{choose.randrange(400_000)}" />\n'
            )
        titled = 0 if choose.random() < 0.561 else 1 + (choose.random() < 0.6)
        title = self._markup(50, titled, id_, thread, "title", formulas)
        self.counts["posts.with_formulas"] += titled > 0 and count == 0
        named = ""
        if accepted is not None:
            self.counts["accepted"] += 1
            named = f'AcceptedAnswerId="{accepted}" '
        return (
            f'  <row Id="{id_}" PostTypeId="1" {named}{dates} Score="{choose.randrange(9)}" Body="{body}" '
            f'Title="{title}" Tags="&lt;calculus&gt;&lt;limits&gt;" OwnerUserId="{choose.randrange(400_000)}" />\n'
        )

    def _markup(
        self, length: int, count: int, id_: int, thread: int, kind: str, formulas: tuple[list[str], ...]
    ) -> str:
        """Return text of ``length`` characters with formulas, escaped as an attribute; add the formulas' rows."""
        choose, share = self._choose, length // (count + 1)
        at = choose.randrange(len(self._text) - length)
        pieces = [self._text[at : at + length - share * count]]
        latex, opt, slt = formulas
        nameless = choose.random() < NAMELESS
        for formula in choose.choices(self._pool, k=count):
            at += share
            own = self._next_formula
            self._next_formula += 1
            name = "" if nameless else f" id=&quot;{own}&quot;"
            pieces.append(
                f" &lt;span class=&quot;math-container&quot;{name}&gt;${formula.latex}$&lt;/span&gt;"
                f" {self._text[at : at + share]}"
            )
            row = f"{own}\t{id_}\t{thread}\t{kind}\t\t{formula.visual_id}\t{formula.visual_id}\t\t"
            latex.append(f"{row}{formula.latex}\n")
            opt.append(f"{row}{formula.opt}\n")
            slt.append(f"{row}{formula.slt}\n")
            self.counts["formulas"] += 1
            self._formulas.add(own)
            self._visual_ids.add(formula.visual_id)
        return "".join(pieces)

    # -- topics and judgments ----------------------------------------------------------------------------------------

    def _topics(self, year: int) -> None:
        lab, first = year - 2019, (1, 201, 301)[year - 2020]
        names = {
            2020: ("Topics_V2.0.xml", "Topics_V1.1.xml", "Formula_topics_{}_V2.0.tsv", ("latex", "opt", "slt")),
            2021: ("Topics_Task1_2021_V1.1.xml", "Topics_Task2_2021_V1.1.xml", "Topics_2021_Formulas_{}_V1.1.tsv",
                   ("Latex", "OPT", "SLT")),
            2022: ("Topics_Task1_2022_V0.1.xml", "Topics_Task2_2022_V0.1.xml", "Topics_Formulas_{}.V0.1.tsv",
                   ("Latex", "OPT", "SLT")),
        }  # fmt: skip
        *files, table, spellings = names[year]
        of_tasks: tuple[list[str], list[str]] = ([], [])
        rows: tuple[list[str], ...] = ([], [], [])
        for number in range(first, first + max(TOPICS[year][:2])):
            own = len(rows[0]) + 1
            formulas = self._choose.choices(self._pool, k=4)
            spans = [
                f"&lt;span class=&quot;math-container&quot; id=&quot;q_{at}&quot;&gt;${formula.latex}$&lt;/span&gt;"
                for at, formula in enumerate(formulas, own)
            ]
            formula_rows = f"      <Formula_Id>q_{own}</Formula_Id>\n      <Latex>{formulas[0].latex}</Latex>\n"
            question = (
                f"      <Title>Why is {spans[0]} so</Title>\n"
                f"      <Question>&lt;p&gt;{self._text[:400]} {' and '.join(spans[1:])}&lt;/p&gt;</Question>\n"
                "      <Tags>calculus</Tags>\n   </Topic>\n"
            )
            for topics, task, start in zip(of_tasks, (1, 2), ("", formula_rows), strict=True):
                if number < first + TOPICS[year][task - 1]:
                    topics.append(f'   <Topic number="{"AB"[task - 1]}.{number}">\n{start}{question}')
                    self.counts[f"topics.task{task}.{year}"] += 1
            for i, formula in enumerate(formulas):
                start = f"q_{own + i}\tA.{number}\t{3_000_000 + number}\t{'body' if i else 'title'}\t"
                self.counts[f"topic_trees.{year}"] += bool(formula.opt)
                for column, text in zip(rows, (formula.latex, formula.opt, formula.slt), strict=True):
                    column.append(f"{start}{text}\n")
        for topics, folder, name in zip(of_tasks, ("Task1&3 Topics", "Task2 Topics"), files, strict=True):
            below = self.out / "Topics" / folder / f"ARQMath-{lab}"
            _text(below / "Topics" / name, f'<?xml version="1.0" ?>\n<Topics>\n{"".join(topics)}</Topics>\n')
            for spelling, column in zip(spellings, rows, strict=True):
                header = "id\ttopic_id\tthread_id\ttype\tformula\n"
                _text(below / "Formulas" / table.format(spelling), header + "".join(column))

    def _judgments(self, year: int) -> None:
        lab, first = year - 2019, (1, 201, 301)[year - 2020]
        below = self.out / "Evaluation" / " Scripts & Qrels" / f"ARQMath-{lab}"
        places = {
            2020: ("Task 1 /qrel_official_task1", "", "Task2/qrel_with_formula_ids/qrel_task2.tsv",
                   "Task2/qrel_with_formula_ids/qrel_task2_all.tsv"),
            2021: ("Task1/Qrel Files/qrel_task1_2021_test.tsv", "Task1/Qrel Files/qrel_task1_2021_all.tsv",
                   "Task2/Qrel Files/qrel_task2_2021_test_official_evaluation.tsv",
                   "Task2/Qrel Files/qrel_task2_2021_all.tsv"),
            2022: ("Task 1/Qrel Files/qrel_task1_2022_official.tsv", "Task 1/Qrel Files/qrel_task1_2022_all.tsv",
                   "Task2/Qrel Files/qrel_task2_2022_official.tsv", "Task2/Qrel Files/qrel_task2_2022_all.tsv"),
        }  # fmt: skip
        for task in (1, 2):
            # Answers in Task 1; in Task 2 formulas in 2020, and visual ids later.
            sample = self._answers if task == 1 else self._formulas if year == 2020 else self._visual_ids
            documents = sorted(set(sample.items))
            lines: list[list[str]] = []
            for number in range(first, first + TOPICS[year][task - 1]):
                judged = self._choose.sample(documents, min(400 if task == 1 else 75, len(documents)))
                grades = self._choose.choices("0123", weights=(85, 7, 5, 3), k=len(judged))
                pairs = zip(judged, grades, strict=True)
                lines.append([f"{'AB'[task - 1]}.{number}\t0\t{document}\t{grade}\n" for document, grade in pairs])
            for edition, place, topics in zip(
                ("official", "all"), places[year][2 * task - 2 : 2 * task], (TOPICS[year][task + 1], None), strict=True
            ):
                if place:
                    kept = [line for topic in lines[:topics] for line in topic]
                    self.counts[f"judgments.task{task}.{year}.{edition}"] = len(kept)
                    _text(below / place, "".join(kept))


def _text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
