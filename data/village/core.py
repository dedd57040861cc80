"""What the grammar talks about: rows of the tables, phrases, clauses, and links.

A sentence is drawn once, as a tree of nodes, and written by a renderer a language.
Each word carries marks that name what it stands for. Words of two languages are
linked when they share a mark: surely if both carry it plainly, else perhaps: `links`.
"""

from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from pathlib import Path
from types import SimpleNamespace

TABLES = Path(__file__).resolve().parent / "tables"


class Reject(Exception):
    """This draft can't be said well in one of the languages: draw another."""


class Row(SimpleNamespace):
    """A line of a table; its columns are attributes, an empty cell is ''."""

    __eq__, __hash__ = object.__eq__, object.__hash__

    def has(self, flag) -> bool:
        return flag in self.flags.split()


@cache
def table(name) -> dict[str, Row]:
    """The rows of tables/<name>.tsv by their first column; lines with # are notes."""
    path, rows = TABLES / f"{name}.tsv", {}
    lines = path.read_text(encoding="utf-8").splitlines()
    header = lines[0].split("\t")
    for number, text in enumerate(lines[1:], 2):
        cells = text.split("\t")
        if not text.strip() or text.startswith("#"):
            continue
        if len(cells) != len(header) or cells[0] in rows:
            what = f"{len(cells)} of {len(header)} columns, or a key that occurs twice"
            raise ValueError(f"{path.name}, line {number}: {what}")
        rows[cells[0]] = Row(**dict(zip(header, cells, strict=True)))
    return rows


@cache
def nouns_of(kinds: str) -> tuple[Row, ...]:
    """The nouns that have one of the kinds, or are named by themselves."""
    wanted = set(kinds.split())
    rows = table("nouns").values()
    found = tuple(r for r in rows if wanted & {r.key, *r.kinds.split()})
    if not found:
        raise ValueError(f"no noun has one of the kinds {kinds!r}")
    return found


@dataclass
class Word:
    text: str
    marks: tuple[str, ...] = ()


def aligned(text, node, default="") -> list[Word]:
    """A pattern of a table: "la/2? semaine/2", "chez/1,2"; default: marks if none."""
    found = []
    for item in text.split():
        word, _, marks = item.partition("/")
        marks = (marks or default).split(",")
        found.append(Word(word, tuple(f"{node}.{m}" for m in marks if m)))
    return found


def told(adverb, language) -> list[Word]:
    """The words of an adverb, a time, a manner; none where there isn't one."""
    return aligned(getattr(adverb.row, language), adverb.id) if adverb else []


def end_mark(text) -> list[Word]:
    return [Word(text, ("end", "q2~") if text in "?？" else ("end",))]


def links(source, target) -> str:
    """The links of two sentences: 0-0 is sure, 0?1 is possible.

    A mark is plain (7), weak (7?: only while the word has no sure link) or that of
    a phrase (7~: always possible with the others of the phrase).
    """
    shared = []
    for i, word in enumerate(source):
        mine = {mark.rstrip("?~"): mark[-1] for mark in word.marks}
        for j, other in enumerate(target):
            for mark in other.marks:
                if (name := mark.rstrip("?~")) in mine:
                    shared.append((i, j, mine[name], mark[-1]))
    sure = {(i, j) for i, j, a, b in shared if a not in "?~" and b not in "?~"}
    left, right = {i for i, _ in sure}, {j for _, j in sure}
    possible = {
        (i, j)
        for i, j, a, b in shared
        if not (a == "?" and i in left) and not (b == "?" and j in right)
    }
    return " ".join(
        f"{i}{'-' if (i, j) in sure else '?'}{j}" for i, j in sorted(sure | possible)
    )


# Nodes. Every mention is a node of its own, so a pronoun said twice has two ids.

_ids = count()


@dataclass(eq=False)
class Node:
    """Whatever a sentence mentions, and the marks of the words that stand for it."""

    id: int = field(default_factory=lambda: next(_ids), kw_only=True)

    def mark(self, part="") -> str:
        """The mark of a part of the node, or of itself: 7.adj, 7.verb?; 7, 7?."""
        return f"{self.id}{part}" if part in ("", "?", "~") else f"{self.id}.{part}"

    def say(self, text, *parts) -> list[Word]:
        """The words of a text, each with the marks of these parts of the node."""
        marks = tuple(self.mark(part) for part in parts or ("",))
        return [Word(word, marks) for word in text.split()]


@dataclass(eq=False)
class NP(Node):
    """A noun phrase. person 1, 2: i, you, we. pronoun: said as he, them …"""

    noun: Row | None = None
    person: int = 3
    plural: bool = False
    gender: str = "m"  # as French has it; of a person, as people have it
    det: str = "the"  # the a this some bare num many all poss own none there
    number: Row | None = None
    adjs: list = field(default_factory=list)
    owner: "NP | None" = None
    name: Row | None = None
    measure: Row | None = None
    rel: "Relative | None" = None
    pronoun: bool = False
    there: bool = False  # there is, there are: French il y a
    generic: bool = False  # apples as such: French les, Chinese bare
    of: "NP | None" = None  # what a pronoun stands for
    itself: bool = False  # the subject of its clause: Chinese 自己

    @property
    def light(self):
        """Is it said as i, you, he …?"""
        return self.pronoun or self.person < 3

    @property
    def pronouns(self) -> Row:
        """Those that stand for it: a row of pronouns.tsv."""
        if self.person < 3:
            key = "we" if self.plural else ("i", "you")[self.person - 1]
            return table("pronouns")[key]
        one, many = ("he", "they") if self.human else ("it", "those")
        return table("pronouns")[f"{many if self.plural else one}_{self.ref.gender}"]

    @property
    def human(self):
        # without a noun it is a name, or a pronoun for somebody
        return self.noun is None or self.person < 3 or self.is_a("person")

    def is_a(self, kind) -> bool:
        return self.noun is not None and kind in self.noun.kinds.split()

    def mention(self) -> "NP":
        """The pronoun for this phrase."""
        bare = {"rel": None, "owner": None, "measure": None, "number": None, "adjs": []}
        return replace(self, pronoun=True, of=self.ref, id=next(_ids), **bare)

    @property
    def ref(self):
        return self.of or self

    def noun_words(self, text) -> list[Word]:
        """The noun; in apple/1 cake, the first word has a mark of its own."""
        pairs = [item.partition("/") for item in text.split()]
        return [Word(word, (self.mark(part),)) for word, _, part in pairs]

    def head(self) -> str:
        """The mark of a preposition before it: that of its first word, weakly."""
        named = self.name and self.noun and not self.pronoun
        return self.mark("name?" if named else "?")


@dataclass(eq=False)
class Place(Node):
    prep: Row
    np: NP | None


@dataclass(eq=False)
class Adverb(Node):
    row: Row


@dataclass(eq=False)
class Clause(Node):
    """Somebody does something. tense: present prog past imperfect future perfect just
    recent; asks: "" yes subj obj place time why number; roles as Frame's columns."""

    frame: Row
    subj: NP
    tense: str = "present"
    obj: NP | None = None
    to: NP | None = None
    comp: object = None  # adjective row, noun row, infinitive clause, reported clause
    place: Place | None = None
    time: Adverb | None = None
    manner: Adverb | None = None  # after the verb: for two hours, at once
    adverb: Adverb | None = None  # with the verb: also, still, often
    modal: Row | None = None
    neg: str = ""  # not never
    passive: bool = False
    asks: str = ""
    command: bool = False
    front: bool = False  # the time stands first
    main: bool = True  # no relative, no second verb of one subject
    shared: bool = False  # the subject was said in the clause before
    than: NP | None = None
    degree: str = ""  # more as very too
    shift: bool = False  # English: gave the boy a book
    purpose: "Clause | None" = None
    gap: str = ""  # the role that the relative word fills
    zh_jiu: str = ""  # mark of the word that 就 belongs to
    bare: str = ""  # Chinese, in a condition (if, when) or before its noun (rel): no 很
    inner: bool = False  # a reported clause: Chinese says its time after its subject

    @property
    def reports(self):
        """Is what is said, thought, known a clause?"""
        return isinstance(self.comp, (Clause, Joined))

    @property
    def trade(self):
        """Is it about what somebody is by trade?"""
        return hasattr(self.comp, "plural")


@dataclass(eq=False)
class Relative(Node):
    """kind: subj obj whose where of (talks about, needs)"""

    kind: str
    clause: Clause
    bare: bool = False  # English: the book she reads


@dataclass(eq=False)
class Joined(Node):
    """Clauses joined by a row of joins.tsv; swapped: the second stands first."""

    how: Row
    first: object
    second: object
    swapped: bool = False  # when, if: the main clause stands first in English

    @property
    def one_subject(self):
        """Do both clauses say something of the same one?"""
        parts = self.first, self.second
        clauses = all(isinstance(part, Clause) for part in parts)
        return clauses and same(*(part.subj for part in parts))


@dataclass(eq=False)
class Weather(Node):
    row: Row
    cause: bool = False  # after because: Chinese says it otherwise


def same(a, b) -> bool:
    """Is the one a pronoun for the other, or are both i, you, we?"""
    if a.person < 3:
        return (a.person, a.plural) == (b.person, b.plural)
    return a.ref is b.ref


def in_order(node, joint, first, second, swapped) -> list[Word]:
    """The words of two clauses: if a, b; b because a; a and b."""
    if "sub" in node.how.kinds and not swapped:
        return joint + first + node.say(",", "comma") + second
    if "sub" in node.how.kinds or "last" in node.how.kinds:
        return second + joint + first
    return first + joint + second


def nodes(node, asked=True):
    """A node and all below it, but for what a pronoun stands for.

    asked: also the place that "where" asks for, which isn't said.
    """
    where = not asked and getattr(node, "asks", "") == "place"
    yield node
    for role, part in vars(node).items():
        if isinstance(part, Node) and role != "of" and not (where and role == "place"):
            yield from nodes(part, asked)
