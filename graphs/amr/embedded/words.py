"""Function words of English in AMR: pronouns, modal verbs, connectives, numbers, times."""

from __future__ import annotations

PRONOUNS = {
    "i": "i", "me": "i", "my": "i", "mine": "i", "myself": "i",
    "you": "you", "your": "you", "yours": "you", "yourself": "you", "yourselves": "you",
    "he": "he", "him": "he", "his": "he", "himself": "he",
    "she": "she", "her": "she", "hers": "she", "herself": "she",
    "it": "it", "its": "it", "itself": "it",
    "we": "we", "us": "we", "our": "we", "ours": "we", "ourselves": "we", "'s": "we",
    "they": "they", "them": "they", "their": "they", "theirs": "they", "themselves": "they",
    "one": "one", "oneself": "one",
}  # fmt: skip
#: The concept that a modal verb puts over its verb, and the role between them.
MODALS = {
    "can": ("possible-01", ":ARG1"), "could": ("possible-01", ":ARG1"), "ca": ("possible-01", ":ARG1"),
    "may": ("possible-01", ":ARG1"), "might": ("possible-01", ":ARG1"),
    "must": ("obligate-01", ":ARG2"), "should": ("recommend-01", ":ARG1"), "ought": ("recommend-01", ":ARG1"),
}  # fmt: skip
#: Determiners with a meaning, and their roles below the noun.
DETERMINERS = {
    "this": (":mod", "this"), "these": (":mod", "this"), "that": (":mod", "that"), "those": (":mod", "that"),
    "all": (":mod", "all"), "every": (":mod", "every"), "each": (":mod", "each"), "any": (":mod", "any"),
    "some": (":mod", "some"), "such": (":mod", "such"), "another": (":mod", "another"), "both": (":mod", "both"),
    "either": (":mod", "either"), "what": (":mod", "amr-unknown"), "which": (":mod", "amr-unknown"),
    "whatever": (":mod", "whatever"), "whichever": (":mod", "whichever"), "half": (":quant", "half"),
}  # fmt: skip
QUANTITIES = frozenset(["many", "much", "few", "several", "more", "most", "less", "least", "fewer", "enough", "little"])
UNKNOWN = frozenset(["what", "who", "whom", "which", "where", "when", "why", "how", "whose", "whoever", "whatever"])
RELATIVE_PRONOUNS = frozenset(["who", "whom", "which", "that", "whose", "where", "when", "why"])

NUMBERS = {
    word: number
    for number, word in enumerate(
        """
        zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
        eighteen nineteen
        """.split()  # noqa: SIM905
    )
} | {
    word: 10 * number
    for number, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2)
}
MULTIPLES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "dozen": 12}
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()  # noqa: SIM905
ORDINALS = {word: number for number, word in enumerate(_ORDINALS, 1)} | {"last": -1}
TIME_UNITS = frozenset("second minute hour day week month year decade century moment".split())  # noqa: SIM905
DISTANCE_UNITS = frozenset(
    """
    inch foot yard mile meter metre kilometer kilometre centimeter millimeter
    """.split()  # noqa: SIM905
)
TIMES = TIME_UNITS | frozenset(
    """
    time morning evening night afternoon today tomorrow yesterday now then once always never ever often
    sometimes already yet soon still again before after later recently currently previously finally eventually
    first
    """.split()  # noqa: SIM905
)
#: Adverbs that join a sentence to what was said before: the sentence is its consequence, or contrasts with it.
CONSEQUENCES = frozenset(["hence", "thus", "therefore", "consequently", "so", "accordingly", "thereby"])
CONTRASTS = frozenset(["however", "nevertheless", "nonetheless", "yet"])

#: Role of a subordinate clause below the main verb, and the concept between, if any.
SUBORDINATORS = {
    "if": (":condition", ""), "unless": (":condition", "!"), "provided": (":condition", ""), "when": (":time", ""),
    "whenever": (":time", ""), "while": (":time", ""), "as": (":time", ""), "once": (":time", ""),
    "after": (":time", "after"), "before": (":time", "before"), "until": (":time", "until"), "till": (":time", "until"),
    "because": (":ARG1-of", "cause-01"), "since": (":ARG1-of", "cause-01"), "for": (":ARG1-of", "cause-01"),
    "although": (":concession", ""), "though": (":concession", ""), "whereas": (":ARG1-of", "contrast-01"),
    "where": (":location", ""), "so": (":ARG0-of", "cause-01"), "like": (":manner", ""),
    "than": (":compared-to", ""), "whether": (":condition", ""), "given": (":condition", ""),
    "iff": (":condition", ""), "wherever": (":location", ""), "lest": (":purpose", ""), "except": (":ARG1-of",
    "except-01"),
}  # fmt: skip
#: Prepositions by their most frequent role, at a frame and at another concept; the gold graphs know better.
PREPOSITIONS = {
    "in": (":location", ":location"), "on": (":location", ":location"), "at": (":location", ":location"),
    "of": (":ARG1", ":poss"), "for": (":purpose", ":purpose"), "to": (":ARG2", ":direction"),
    "into": (":ARG4", ":direction"), "onto": (":ARG4", ":direction"), "from": (":source", ":source"),
    "with": (":accompanier", ":accompanier"), "without": (":manner", ":accompanier"), "by": (":manner", ":manner"),
    "via": (":instrument", ":instrument"), "using": (":instrument", ":instrument"), "about": (":topic", ":topic"),
    "over": (":location", ":location"), "during": (":time", ":time"), "since": (":time", ":time"),
    "through": (":path", ":path"), "as": (":ARG2", ":example-of"), "among": (":location", ":location"),
    "like": (":manner", ":example"), "because": (":ARG1-of", ":ARG1-of"), "despite": (":concession", ":concession"),
    "regarding": (":topic", ":topic"), "concerning": (":topic", ":topic"), "per": (":frequency", ":mod"),
}  # fmt: skip
#: Prepositions that become a concept, with their object as :op1.
RELATIONS = {
    "under": ":location", "above": ":location", "below": ":location", "behind": ":location", "between": ":location",
    "beyond": ":location", "near": ":location", "around": ":location", "across": ":path", "along": ":path",
    "outside": ":location", "inside": ":location", "within": ":location", "against": ":direction", "up": ":direction",
    "down": ":direction", "toward": ":direction", "towards": ":direction", "beneath": ":location", "beside":
    ":location", "after": ":time", "before": ":time", "until": ":time", "upon": ":location", "modulo": ":mod",
    "except": ":mod",
}  # fmt: skip
#: Nouns for collections; their members follow with "of".
COLLECTIONS = frozenset(
    """
    set group pair family collection sequence series list number bunch tuple sum product union class system
    """.split()  # noqa: SIM905
)
QUANTIFIERS = frozenset(["all", "every", "each", "any", "some"])
