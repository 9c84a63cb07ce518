"""Systems by name: unknown names, names that two systems have, packages that cannot be imported."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any

import pytest

from experiments.command import FAULT, ended_by
from experiments.configuration.registration import fault_of, job_settings, register
from graphs.corpus.post import Judgment, Post, Topic
from graphs.digests import of_file
from graphs.errors import ConfigError
from graphs.extensions import SYSTEMS
from mathamr.stages.settings import JobSettings
from mathamr.stages.topic_sets import TopicSet
from mathamr.systems import registry
from mathamr.systems.registry import find, loadable, names, settings_of, system
from mathamr.systems.settings.built_in import BUILT_IN
from mathamr.systems.system import System

TOPIC = Topic("A.1", Post("A.1", "topic", title="What is $x$?", markup="text"))
CODE = """
from mathamr.systems.registry import system
from mathamr.systems.system import System

@system("{name}")
class Installed(System):
    def retrieve(self, *_): ...
"""


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Write a distribution with an entry point, as an installer leaves it."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(distribution: str, name: str, module: str, code: str) -> None:
        monkeypatch.delitem(sys.modules, module, raising=False)
        (tmp_path / f"{module}.py").write_text(code)
        record = tmp_path / f"{distribution.replace('-', '_')}-1.0.dist-info"
        record.mkdir()
        (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (record / "entry_points.txt").write_text(f"[{SYSTEMS}]\n{name} = {module}:Installed\n")

    return write


def test_systems_of_this_package_have_the_names_of_the_registry() -> None:
    assert list(loadable()) == names() == list(BUILT_IN)
    for name in BUILT_IN:
        assert find(name).name == name
        assert find(name).settings is settings_of(name)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"track=fusoin is not known; .* run; did you mean fusion\?"):
        find("fusoin")


def test_only_a_setting_chooses_a_system() -> None:
    for title in ('"Keep track: results"', '"On track=results"', '"One, track: results"'):
        assert fault_of([f"experiment.title={title}", "train.epoch=3"]) is None
    assert "track=random is not known" in str(fault_of(["track=random", "random.count=3"]))


def test_two_classes_with_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"two systems are called graph: mathamr\.systems\.graph:GraphSystem and .*X"):

        @system("graph")
        class X(System):
            pass

    @system("own")
    class Own(System):
        pass

    assert find("own") is Own
    with pytest.raises(ConfigError, match=r"two systems are called own: .*Own and .*Another; rename one"):

        @system("own")
        class Another(System):
            pass


def test_an_installed_system_is_found_by_its_entry_point(install: Callable[..., None]) -> None:
    install("mathamr-newest", "newest", "mathamr_newest_a", CODE.format(name="newest"))
    assert "newest" in names()
    assert find("newest").__module__ == "mathamr_newest_a"
    assert find("newest").name == "newest"


def test_changed_code_of_an_installed_system_changes_its_keys(install: Callable[..., None], tmp_path: Path) -> None:
    code = CODE.format(name="newest")
    install("mathamr-newest", "newest", "mathamr_newest_e", code)
    assert registry.key_parts("newest") == {"track": "newest"}  # not imported: no job has its key yet
    find("newest")
    before = registry.key_parts("newest")
    assert before["code"].startswith("mathamr-newest 1.0 ")
    (tmp_path / "mathamr_newest_e.py").write_text(f"{code}# another\n")
    assert registry.key_parts("newest") != before
    assert [registry.key_parts(name) for name in BUILT_IN] == [{"track": name} for name in BUILT_IN]


def test_changed_code_beside_the_module_of_an_installed_system_changes_its_keys(
    install: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "mathamr_newest_g" / "parts").mkdir(parents=True)
    code = CODE.format(name="newest")
    install("mathamr-newest", "newest", "mathamr_newest_g/__init__", code)
    record = tmp_path / "mathamr_newest-1.0.dist-info" / "entry_points.txt"
    record.write_text(record.read_text().replace("/__init__", ""))
    find("newest")
    keys = [registry.key_parts("newest")]
    assert keys[0]["code"].endswith(of_file(tmp_path / "mathamr_newest_g" / "__init__.py")[:16])
    for content in ("WEIGHT = 1\n", "WEIGHT = 2\n"):
        (tmp_path / "mathamr_newest_g" / "parts" / "weights.py").write_text(content * len(keys))
        keys.append(registry.key_parts("newest"))
    assert len({key["code"] for key in keys}) == 3
    for other in (".venv/weights.py", ".ipynb_checkpoints/weights-checkpoint.py"):  # cannot be imported from here
        (tmp_path / "mathamr_newest_g" / other).parent.mkdir()
        (tmp_path / "mathamr_newest_g" / other).write_text("WEIGHT = 1\n")
    (tmp_path / "mathamr_newest_g" / "gone.py").symlink_to("nowhere.py")
    assert registry.key_parts("newest") == keys[-1]


def test_changed_code_of_a_class_that_its_entry_point_imports_changes_its_keys(
    install: Callable[..., None], tmp_path: Path
) -> None:
    core = tmp_path / "mathamr_newest_h" / "core.py"
    (core.parent / "plugins").mkdir(parents=True)
    for folder in (core.parent, core.parent / "plugins"):
        (folder / "__init__.py").touch()
    core.write_text(CODE.format(name="newest"))
    install("mathamr-newest", "newest", "mathamr_newest_h/plugins/own", "from mathamr_newest_h.core import Installed\n")
    record = tmp_path / "mathamr_newest-1.0.dist-info" / "entry_points.txt"
    record.write_text(record.read_text().replace("/", "."))
    find("newest")
    before = registry.key_parts("newest")
    core.write_text(core.read_text() + "# another\n")
    assert registry.key_parts("newest") != before


@pytest.mark.parametrize("name", ["newest", "graph"])
def test_two_distributions_with_one_name_are_named(install: Callable[..., None], name: str) -> None:
    install("mathamr-newest", name, "mathamr_newest_b", CODE.format(name=name))
    if name == "newest":
        install("other-newest", name, "mathamr_newest_c", CODE.format(name=name))
    owners = r"(mathamr-newest|other-newest) 1\.0" if name == "newest" else "mathamr-plus"
    with pytest.raises(ConfigError, match=rf"two systems are called {name}: of {owners} and of .* 1\.0; uninstall one"):
        names()
    with pytest.raises(ConfigError, match="two systems are called"):
        register()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import not_there_at_any_time", r"ModuleNotFoundError: .*'not_there.*; mend the package"),
        ("1 / 0", r"cannot be imported: ZeroDivisionError"),
        ("", r"cannot be imported: AttributeError"),
        ("Installed = 7", r"is not a subclass of mathamr\.systems\.system\.System"),
        (CODE.format(name="older"), r'is not registered by this name; write @system\("newest"\)'),
        (CODE.format(name="graph"), r"two systems are called graph"),
        (
            "from mathamr.stages.settings import JobSettings\nclass Own(JobSettings):\n    size: int\n"
            + CODE.format(name="newest").replace("(System)", "(System[Own])"),
            r": write @dataclass\(frozen=True, kw_only=True\) above Own$",
        ),
        (CODE.format(name="newest").replace("retrieve", "rank"), r"lacks the methods retrieve; write them"),
        (
            CODE.format(name="newest") + "    def train(self, *_): ...\n",
            r"lacks the methods best, model_key_parts \(of its settings\); write them",
        ),
        (CODE.format(name="newest") + "    tasks = 1\n", r"has tasks = 1; write e\.g\. tasks = frozenset\(\{1\}\)"),
        (CODE.format(name="newest") + "1 / 0", r"cannot be imported: ZeroDivisionError"),
    ],
)
def test_a_package_that_cannot_be_used_is_named_and_stops_no_other(
    install: Callable[..., None], code: str, message: str
) -> None:
    install("mathamr-broken", "newest", "mathamr_newest_d", code)
    with pytest.raises(ConfigError, match=message) as error:
        find("newest")
    assert error.match(r"^system newest of mathamr-broken 1\.0 \(mathamr_newest_d:Installed\)")
    assert "newest" not in loadable()
    assert find("bm25").name == "bm25"
    register()
    conditions = ("+experiment.conditions.mine={track: newest}", "+experiment.conditions.mine.track=newest")
    for word in ("track=newest", *conditions):  # its keys are unknown
        assert str(fault_of([word, "newest.count=10"])) == str(error.value)


@pytest.mark.parametrize("hint", ["ClassVar", "ClassVar[bool]", "'ClassVar[bool]'"])
def test_settings_that_add_no_field_need_no_decorator(install: Callable[..., None], hint: str) -> None:
    settings = f"class Own(JobSettings):\n    learns_from_judgments: {hint} = True\n"
    imports = "from typing import ClassVar\nfrom mathamr.stages.settings import JobSettings\n"
    code = CODE.format(name="newest").replace("(System)", "(System[Own])")
    install("mathamr-newest", "newest", "mathamr_newest_j", imports + settings + code)
    assert settings_of("newest").learns_from_judgments


@pytest.mark.parametrize("first", ["newest", "broken"])
def test_a_faulty_system_beside_one_that_can_be_used_is_named_each_time(
    install: Callable[..., None], tmp_path: Path, first: str
) -> None:
    other = CODE.format(name="broken").replace("Installed", "Broken").replace("retrieve", "rank")
    install("mathamr-two", "newest", "mathamr_newest_i", CODE.format(name="newest") + other)
    with (tmp_path / "mathamr_two-1.0.dist-info" / "entry_points.txt").open("a") as points:
        points.write("broken = mathamr_newest_i:Broken\n")
    for name in (first, "newest", "broken", "newest", "broken"):
        if name == "newest":
            assert find(name).name == name
        else:
            with pytest.raises(ConfigError, match=r"^system broken of mathamr-two 1\.0 .* lacks the methods retrieve"):
                find(name)
    assert list(loadable()) == [*BUILT_IN, "newest"]


@dataclass
class Settings:
    size: int = 3


@pytest.mark.parametrize(
    ("group", "message"),
    [("bm25", "tracks bm25 and own type the group bm25 differently"), ("data", "track=own has a group data")],
)
def test_a_group_of_settings_has_one_type(group: str, message: str) -> None:
    settings = make_dataclass("OwnSettings", [(group, Settings)], bases=(JobSettings,), frozen=True, kw_only=True)

    @system("own")
    class Own(System[settings]):
        pass

    register()  # the other systems run
    with pytest.raises(ConfigError, match=rf"^settings of track=own are faulty: {message}"):
        job_settings({"track": "own", "experiment": {}})


def register_own(folder: Path, **files: str) -> None:
    """Register a system with the group ``own`` of these files."""
    (folder / "own").mkdir()
    for name, content in files.items():
        (folder / "own" / f"{name}.yaml").write_text(content)

    @dataclass(frozen=True, kw_only=True)
    class OwnSettings(JobSettings):
        own: Settings

    OwnSettings.conf = folder

    @system("own")
    class Own(System[OwnSettings]):
        pass

    register()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size: [1,", "not YAML: while parsing"),
        ("sise: 1", "Key 'sise' not in"),
        ("size: x", "size: Value 'x'"),
        ("- size", "a list; write a line NAME: VALUE for each setting"),
    ],
)
def test_faulty_settings_of_a_system_are_named_and_stop_no_other(tmp_path: Path, text: str, message: str) -> None:
    register_own(tmp_path, default=text)
    with pytest.raises(ConfigError, match=rf"^settings of track=own are faulty: .*own/default\.yaml: .*{message}"):
        job_settings({"track": "own", "experiment": {}})
    assert "own/default.yaml" in str(fault_of(["track=own", "own.size=4"]))
    assert fault_of(["track=bm25", "own.size=4"]) is None


def test_a_group_without_files_needs_a_value_for_each_setting() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Empty:
        size: int

    for name, group in {"complete": Settings, "empty": Empty}.items():
        settings = make_dataclass(
            "OwnSettings", [(f"of_{name}", group)], bases=(JobSettings,), frozen=True, kw_only=True
        )

        @system(name)
        class Own(System[settings]):
            pass

    register()  # the other systems run
    assert fault_of(["track=complete"]) is None
    message = (
        r"^settings of track=empty are faulty: of_empty\.size has no value; write conf/of_empty/default\.yaml, or "
    )
    with pytest.raises(ConfigError, match=message):
        job_settings({"track": "empty", "experiment": {}})


def test_files_of_settings_may_begin_with_those_of_others(tmp_path: Path) -> None:
    register_own(tmp_path, default="size: 1", big="defaults: [default, _self_]\nsize: 9")
    assert fault_of(["track=own"]) is None


def test_a_task_and_a_test_that_a_system_cannot_do_are_refused() -> None:
    def topic_set(task: Any, searched: frozenset[str] | None = None) -> TopicSet:
        return TopicSet(task, [TOPIC], [Judgment("A.1", "a", 3)], "full", searched=searched)

    registry.check_abilities(find("graph"), [topic_set(1), topic_set(2)])
    registry.check_abilities(find("text"), [topic_set(1, frozenset({"a"}))])
    with pytest.raises(
        ConfigError,
        match=r"track=text cannot do Task 2: .* one of the tracks graph, bm25, structure, latent, fusion, learned, run",
    ):
        registry.check_abilities(find("text"), [topic_set(1), topic_set(2)])
    with pytest.raises(
        ConfigError,
        match=r"track=graph searches all answers, .* of the tracks text, bm25, sparse, structure, latent, fusion",
    ):
        registry.check_abilities(find("graph"), [topic_set(1, frozenset({"a"}))])


def test_a_fault_in_an_installed_system_names_its_package(
    install: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    code = CODE.format(name="newest").replace("(self, *_): ...", "(*_): return {}['A.1']")
    install("mathamr-newest", "newest", "mathamr_newest_f", code)
    for call, blamed in ((find("newest").retrieve, "mathamr-newest 1.0"), ({}.pop, "the program")):
        with pytest.raises(KeyError) as raised:
            call("A.1")
        assert ended_by(raised.value) == FAULT
        assert f"a fault of {blamed}: KeyError: 'A.1'" in capsys.readouterr().err
