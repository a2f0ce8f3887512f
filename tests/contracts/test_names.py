"""Names and first lines of docstrings: the rules that a reader relies on.

``python tests/contracts/test_names.py [ROOM]...`` lists what breaks them, by room (or path, such as ``rankers/trees``).
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ROOMS = words(
    "data measures objectives torch optimisers scorers models rankers analysis experiments report tuning papers cli "
    "kernels runtime basics"
)
BESIDE = {"__init__", "__main__"}

# Modules of one name in two rooms, where each room's reader expects that name.
SHARED_MODULE_NAMES = {"base", "__init__", "__main__"}

# The first word of a function's docstring. Add a verb that is missing; nouns and prepositions do not belong here.
VERBS = words(
    """
    abort accept accumulate activate add adapt adjust advance advise aggregate align allocate allow anneal announce answer append apply
    arrange ascend ask assemble assert assign attach average balance begin bin blend block boost bootstrap bracket break bring broadcast
    build bundle cache calculate calibrate call cancel cap cast center centre change check choose claim clamp clean clear climb clip
    clone close coerce collapse collect combine compact compare compile complete compose compress compute concatenate configure
    confirm connect construct consume continue contract convert copy correct count cover create cut deal decide declare decode
    decompress decrease deduplicate define delete derive descend describe deserialise detach detect determine diagnose differentiate
    disable discard discover display distribute divide do document double download draw drop dump emit enable encode end enforce
    ensure enter enumerate erase escape estimate evaluate exchange exclude execute exit expand explain export expose express extend
    extract factorise fail fetch fill filter find finish fit fix flag flatten flip flush fold follow forbid force forget fork form
    format free freeze fuse gather generate get give go grade group grow guard guess halve hand handle hash hide highlight hint hold
    identify ignore import improve include increase index indicate infer inform inherit initialise insert inspect install integrate
    interpolate interpret intersect introduce invert invoke issue iterate join judge jump keep kill label launch lay lead learn leave
    let lift limit link list load locate lock log look lower make map mark mask match maximise measure merge migrate minimise mirror
    mix modify move multiply name narrow negate normalise note notice number obtain offer omit open optimise order organise overwrite
    pack pad pair parse partition pass patch pause perform permute perturb pick pickle place plan plot point polish pool postpone precompute
    predict prefer prefix prepare present preserve print probe proceed process produce profile project promote propagate propose
    protect prove provide prune publish pull push put query quote raise randomise rank rate reach read rearrange rebuild recalculate
    receive recognise recompute record recover reduce refer refit refresh refuse register reject release reload remember remove rename
    render reorder repair repeat replace replay report represent reproduce request require rescale reserve reset reshape resize
    resolve restart restore restrict resume retain retry return reuse reverse revert rewrite rotate round route run sample save say
    scale scan scatter schedule score search see select send separate serialise set share shift show shrink shuffle shut sign signal
    simplify simulate skip slice smooth solve sort specify split stack standardise start state step stop store stream strip subtract
    suggest sum summarise supply support suppress swap sweep switch symmetrise synchronise take tell terminate test tie tighten time
    title toggle trace track train transfer transform translate transpose treat trim truncate try tune turn unfold unite unlock unpack
    unwrap update upgrade use validate verify view visit wait walk warm warn weigh weight widen wrap write yield zero zip
    """
)
NOUNS_FIRST = re.compile(r"(A|An|The|Whether)\b")  # a class, or a property: an attribute to its reader

# Names of the past, none of which may be an identifier again: whole names, then parts of names.
FORMER_NAMES = words(
    """
    Lesson Lessons Chapter Chapters teach Walk Judge spoken settled Kicks Kick blow kicked Pull outline bend drift nowhere Written
    is_ours BoundTried FrozenTried told Placed BoundMeasure BoundObjective
    """
)
FORMER_WORDS = words("lesson chapter teach taught kick kicked blow told spoken settled nowhere island islands")
NOT_FUNCTIONS = words(
    "settled told spoken turned placed noted recalled lowered judged weighed bind bound spread pool walk"
)
FORMER_SENTENCES = (
    "Of scaled documents.",
    "Of raw ones.",
    "By set.",
    "Blows that may lead from a local maximum",
    "what weights pay for being far from where they are expected",
    "That sums are not reordered is said",
    "No library reads a text that was not written here",
    "pairs weigh what their exchange would change the measure",
    "Reports, and selects.",
    "expected two above 0, the lower one first",
    "linear scorers are the CPU's",
    "is solved to a certified duality gap",
    "what trees are worth, in words",
    "cannot be told from",
)


class Offender(NamedTuple):
    rule: str
    path: Path  # within the package, or of a page of documentation
    line: int
    message: str

    @property
    def room(self) -> str:
        return self.path.parts[0].removesuffix(".py")

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@cache
def sources(root: Path) -> dict[Path, str]:
    package = root / "src" / "rankwright"
    return {path.relative_to(package): path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}


@cache
def trees(root: Path) -> dict[Path, ast.Module]:
    return {path: ast.parse(text) for path, text in sources(root).items()}


def repeated_class_names(root: Path) -> Iterator[Offender]:
    places: dict[str, list[tuple[Path, int]]] = defaultdict(list)
    for path, tree in trees(root).items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append((path, node.lineno))
    for name, found in places.items():
        twin_of_torch = len(found) == 2 and {path.parts[0] for path, _ in found} == {"torch", "objectives"}
        if len(found) > 1 and not twin_of_torch:
            for path, line in found:
                others = ", ".join(str(other) for other, _ in found if other != path)
                yield Offender("class names", path, line, f"class {name} exists in {others} too")


def repeated_module_names(root: Path) -> Iterator[Offender]:
    places: dict[str, list[Path]] = defaultdict(list)
    for path in sources(root):
        if path.stem not in SHARED_MODULE_NAMES:  # folders may share names: kernels are grouped as the rooms above
            places[path.stem].append(path)
    for name, found in places.items():
        objectives = {path.parts[0] for path in found} == {"torch", "objectives"} and len(found) == 2
        if len(found) > 1 and not objectives:
            for path in found:
                others = ", ".join(str(other) for other in found if other != path)
                yield Offender("module names", path, 1, f"module {name} exists as {others} too")


def misplaced_rooms(root: Path) -> Iterator[Offender]:
    present = {path.parts[0].removesuffix(".py") for path in sources(root)}
    for name in sorted(present - ROOMS - BESIDE):
        yield Offender("rooms", Path(name), 1, f"{name} is not one of the {len(ROOMS)} rooms")
    for name in sorted(ROOMS):
        if name not in present or (Path(f"{name}.py") in sources(root)):
            yield Offender("rooms", Path(name), 1, f"there is no room {name}/")
    pages = (root / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()
    for name in sorted(ROOMS):
        # A row of a table, an item of a list or a heading: the room's name, then a sentence.
        if not any(re.match(rf"\W*{name}/?\W+\w+(\W+\w+)+\W*\.\W*$", page) for page in pages):
            yield Offender("rooms", Path(name), 1, f"docs/ARCHITECTURE.md has no line '{name}/ ... one sentence.'")


def is_property(node: ast.AST) -> bool:
    return any(
        "property" in (text := ast.unparse(decorator)) or text.endswith((".setter", ".getter"))
        for decorator in getattr(node, "decorator_list", ())
    )


def fault_of_docstring(node: ast.AST, docstring: str) -> str | None:
    """Say what is wrong with a docstring's first line, or return None."""
    first = docstring.strip().splitlines()[0]
    start = first.split()[0]
    if not first.endswith("."):
        return "does not end with a full stop"
    if len(first.split()) < 3:
        return "is not a full sentence"
    if isinstance(node, ast.ClassDef):
        named = re.match(r"([A-Z]\w*)(:|,| is\b)", first)
        if not (start in {"A", "An", "The"} or (named and named[1].lower().startswith(node.name.lower()[:4]))):
            return "does not begin with A, An, The or the class's own name and a colon"
    elif is_property(node) and NOUNS_FIRST.match(first):
        return None
    elif start.rstrip(",:;").lower() not in VERBS or not start[0].isupper():
        return f"begins with {start!r}, which is not a verb in VERBS"
    return None


def faulty_docstrings(root: Path) -> Iterator[Offender]:
    for path, tree in trees(root).items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(node)
                fault = docstring and fault_of_docstring(node, docstring)
                if docstring and fault:
                    first = docstring.strip().splitlines()[0]
                    yield Offender("docstrings", path, node.lineno, f"{node.name}: {fault}: {first[:90]}")


def words_of(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def former_names(root: Path) -> Iterator[Offender]:
    for path, text in sources(root).items():
        seen = set()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            name = token.string
            if token.type != tokenize.NAME or name in seen:
                continue
            if name in FORMER_NAMES or words_of(name) & FORMER_WORDS:
                seen.add(name)
                yield Offender("former names", path, token.start[0], f"{name} is a name of the past")
        for node in ast.walk(trees(root)[path]):
            if isinstance(node, ast.FunctionDef) and node.name.lstrip("_") in NOT_FUNCTIONS and node.name not in seen:
                yield Offender("former names", path, node.lineno, f"{node.name} is no name for a function")
            if isinstance(node, ast.ClassDef) and re.match(r"_?Bound[A-Z]", node.name):
                yield Offender("former names", path, node.lineno, f"{node.name}: what is prepared is Prepared...")


def former_sentences(root: Path) -> Iterator[Offender]:
    pages = dict(sources(root))
    for page in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]:
        pages[page.relative_to(root)] = page.read_text(encoding="utf-8")
    for path, text in pages.items():
        for number, line in enumerate(text.splitlines(), 1):
            for sentence in FORMER_SENTENCES:
                if sentence in line:
                    yield Offender("former sentences", path, number, repr(sentence))


RULES = {
    "class names": repeated_class_names,
    "module names": repeated_module_names,
    "rooms": misplaced_rooms,
    "docstrings": faulty_docstrings,
    "former names": former_names,
    "former sentences": former_sentences,
}


def pytest_generate_tests(metafunc) -> None:
    metafunc.parametrize("rule", RULES)


def test_names_and_docstrings_follow_the_rules(rule):
    assert list(map(str, RULES[rule](ROOT))) == []


def main(rooms: list[str], root: Path) -> None:
    """Print the offenders of rooms, or of all, and how many there are."""
    found = [offender for find in RULES.values() for offender in find(root)]
    if rooms:
        paths = [room.removeprefix("src/rankwright/").rstrip("/") for room in rooms]
        found = [each for each in found if any(each.room == room or str(each.path).startswith(room) for room in paths)]
    for room in sorted({offender.room for offender in found}):
        print(f"\n== {room}")
        for rule in RULES:
            of_rule = [offender for offender in found if (offender.room, offender.rule) == (room, rule)]
            if of_rule:
                print(f"-- {rule}: {len(of_rule)}")
                print(*of_rule, sep="\n")
    print("\ntotal: " + ", ".join(f"{rule} {sum(each.rule == rule for each in found)}" for rule in RULES))


if __name__ == "__main__":
    main(sys.argv[1:], ROOT)
