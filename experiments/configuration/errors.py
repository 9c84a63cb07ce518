"""Errors of Hydra, OmegaConf and YAML as one line that names the key or the file, and the way out.

>>> from hydra.errors import ConfigCompositionException
>>> said = "Could not override 'train.epcohs'.\\nTo append to your config use +train.epcohs=3"
>>> print(refusal(ConfigCompositionException(said), lambda: ["train.epochs"]))
unknown key train.epcohs; did you mean train.epochs?
>>> print(refusal(MissingConfigException("Could not find 'train/fast'", "train/fast", ["laptop", "best"]), list))
conf/train has no fast.yaml; choose from: best, laptop
>>> from hydra.core.override_parser.overrides_parser import OverridesParser
>>> try:
...     OverridesParser.create().parse_overrides(["data.root=/tmp/mäth"])
... except OverrideParseException as error:
...     print(refusal(error, list))
'data.root=/tmp/mäth' cannot be read: unexpected 'ä'; write 'data.root="/tmp/mäth"'
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException
from yaml import MarkedYAMLError

from experiments.options import setting
from graphs.errors import ConfigError, suggestion

CONFIGURATION_ERRORS = (HydraException, OmegaConfBaseException, MarkedYAMLError, ValueError)
"""Errors that a wrong setting or a wrong file of settings causes."""

_PACKAGE = "# @package _global_"
_SETTINGS = {  # --exp is an abbreviation of another option of Hydra
    "--exp": "+exp=NAME",
    "--root": "data.root=DIR",
    "--track": "track=NAME",
}


def refusal(error: Exception, known: Callable[[], Iterable[str]]) -> ConfigError:
    """Return the error to raise instead.

    ``known`` returns the keys of the configuration, with their groups; composing them takes a second.
    """
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        place = error.problem_mark
        return ConfigError(f"not YAML: {error.problem}", path=place.name, line=place.line + 1)
    if isinstance(error, MissingConfigException):
        return _missing(error, lines[0])
    if isinstance(error, OverrideParseException):
        return _unreadable(error.override or "", text)
    if match := re.search(r"Ambiguous value for argument '(.+)'", text):
        key, _, value = match[1].partition("=")
        return ConfigError(f"{match[1]} is a text or a list; write {_in_shell(match[1])} or '{key}=[{value}]'")
    if match := re.search(r"Could not override '([^']+)'", text):
        keys = list(known())
        if match[1] in keys:  # a mapping, with an entry that it does not have yet
            return ConfigError(f"{match[1]} gets new entries; write a + before it: +{match[1]}={{...}}")
        return ConfigError(f"unknown key {match[1]}{suggestion(match[1], keys)}")
    if match := re.search(r"An item is already at '([^']+)'", text):
        return ConfigError(f"{match[1]} has a value already; leave out the + before it")
    if match := re.search(r"In '(exp/[^']+)'.*\s+Key 'exp' not in", text):
        return ConfigError(f"{match[1]}.yaml does not begin with the line {_PACKAGE!r}; add it")
    if match := re.search(r"In '([^']+)': .* raised while composing config:", text):
        key = re.search(r"Key '[^']+' not in '\w+'\s+full_key: (\S+)", text)
        what = f"unknown key {key[1]}{suggestion(key[1], known())}" if key else _of_value(lines[1:])
        return ConfigError(f"{match[1]}.yaml: {what}")
    if isinstance(error.__cause__, OmegaConfBaseException):
        cause = [line.strip() for line in str(error.__cause__).splitlines() if line.strip()]
        given = lines[0].removeprefix("Error merging override ")
        what = _of_value(cause)
        return ConfigError(f"{given}: {what.removeprefix(given.lstrip('~').partition('=')[0] + ': ')}")
    return ConfigError(_of_value(lines))


def check_words(words: Sequence[str]) -> None:
    """Raise a ``ConfigError`` for words of a command line that Hydra would take for something else."""
    for word in words:
        if (name := word.partition("=")[0]) in _SETTINGS:
            raise ConfigError(f"{name} is not an option; write {_SETTINGS[name]}")
    if "launcher=slurm" in words:
        if find_spec("submitit") is None:
            raise ConfigError(
                "launcher=slurm needs hydra-submitit-launcher: pip install 'mathamr-plus[slurm]'; or use "
                "slurm/seeds_array.sbatch"
            )
        if not {"--multirun", "-m"} & set(words):  # the jobs would run here
            raise ConfigError("launcher=slurm sends the parts of a plan: add --multirun and job=1/N,2/N,...,N/N")
    for word in words:
        name, _, value = word.lstrip("+").partition("=")
        if name == "train.seed":
            raise ConfigError(
                f"{word} has no effect: each job has a seed of experiment.seeds; write 'experiment.seeds=[{value}]'"
            )


def _unreadable(override: str, text: str) -> ConfigError:
    """Return the error for a word that is no ``KEY=VALUE`` of Hydra, whose message is ``text``."""
    if "missing EQUAL" in text:
        return ConfigError(f"{override!r} is not a setting; write KEY=VALUE, or +exp=NAME for an experiment")
    reason, *more = (line for line in text.splitlines() if not line.startswith(("Error parsing", "See http")))
    if more and more[0].strip() == "^":  # below the character that is meant
        reason = f"unexpected {reason[more[0].index('^') :][:1]!r}"
    key, _, value = override.partition("=")
    if not re.fullmatch(r"[+~]*[\w./@:-]+", key, re.ASCII):
        way_out = "use a key of conf/"
    elif value.startswith(("[", "{", '"', "'")):
        way_out = "close brackets and quotation marks, and put values (not keys) with other signs in quotation marks"
    elif value.startswith("~/"):  # a shell puts the folder in at the start of a word only
        way_out = f"write \"{key}='$HOME{value[1:]}'\""
    else:
        way_out = f"write {_in_shell(override)}"
    return ConfigError(f"{override!r} cannot be read: {reason}; {way_out}")


def _in_shell(override: str) -> str:
    """Return ``KEY=VALUE`` with quotation marks for Hydra, and around them those for a shell."""
    key, _, value = override.partition("=")
    return shlex.quote(setting(key, value))


def _missing(error: MissingConfigException, first: str) -> ConfigError:
    group, _, name = str(error.missing_cfg_file or "").rpartition("/")
    options = sorted(error.options or ())
    if not group or not options:
        return ConfigError(first)
    own = f"; for one of yours, FOLDER/exp/{name}.yaml, add --config-dir FOLDER" if group == "exp" else ""
    known = suggestion(name, options) or f"; choose from: {', '.join(options)}{own}"
    return ConfigError(f"conf/{group} has no {name}.yaml{known}")


def _of_value(lines: list[str]) -> str:
    """Return what is wrong, with the key where the lines name it."""
    key = next((line.removeprefix("full_key: ") for line in lines if line.startswith("full_key: ")), "")
    first = lines[0] if lines else "cannot be read"
    first = re.sub(r"Invalid value assigned: \w+ is not a ListConfig.*", "not a list; write [...]", first)
    return f"{key}: {first}" if key and key not in first else first
