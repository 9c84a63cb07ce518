"""Errors of Hydra, OmegaConf and YAML as one line that names the key or the file, and the way out.

>>> from hydra.errors import ConfigCompositionException
>>> said = "Could not override 'train.epcohs'.\\nTo append to your config use +train.epcohs=3"
>>> print(refusal(ConfigCompositionException(said), lambda: ["train.epochs"]))
unknown key train.epcohs; did you mean train.epochs?
>>> print(refusal(MissingConfigException("Could not find 'train/fast'", "train/fast", ["laptop", "best"]), list))
conf/train has no fast.yaml; choose from: best, laptop
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException
from yaml import MarkedYAMLError

from graphs.errors import ConfigError, suggestion

CONFIGURATION_ERRORS = (HydraException, OmegaConfBaseException, MarkedYAMLError, ValueError)
"""Errors that a wrong setting or a wrong file of settings causes."""

_PACKAGE = "# @package _global_"


def refusal(error: Exception, known: Callable[[], Iterable[str]]) -> ConfigError:
    """Return the error to raise instead.

    Args:
        known: returns the keys of the configuration, with their groups; composing them takes a second.
    """
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        place = error.problem_mark
        return ConfigError(f"not YAML: {error.problem}", path=place.name, line=place.line + 1)
    if isinstance(error, MissingConfigException):
        return _missing(error, lines[0])
    if isinstance(error, OverrideParseException):
        override = error.override
        if "missing EQUAL" in text:
            return ConfigError(f"{override!r} is not a setting; write KEY=VALUE, or +exp=NAME for an experiment")
        return ConfigError(f"{override!r} cannot be read: {lines[-2] if len(lines) > 1 else lines[0]}; quote the value")
    if match := re.search(r"Could not override '([^']+)'", text):
        return ConfigError(f"unknown key {match[1]}{suggestion(match[1], known())}")
    if match := re.search(r"An item is already at '([^']+)'", text):
        return ConfigError(f"{match[1]} has a value already; leave out the + before it")
    if match := re.search(r"In '(exp/[^']+)'.*\s+Key 'exp' not in", text):
        return ConfigError(f"{match[1]}.yaml does not begin with the line {_PACKAGE!r}; add it")
    if match := re.search(r"In '([^']+)': .* raised while composing config:", text):
        return ConfigError(f"{match[1]}.yaml: {_of_value(lines[1:])}")
    if isinstance(error.__cause__, OmegaConfBaseException):
        cause = [line.strip() for line in str(error.__cause__).splitlines() if line.strip()]
        given = lines[0].removeprefix("Error merging override ")
        what = _of_value(cause)
        return ConfigError(f"{given}: {what.removeprefix(given.lstrip('~').partition('=')[0] + ': ')}")
    return ConfigError(_of_value(lines))


def _missing(error: MissingConfigException, first: str) -> ConfigError:
    group, _, name = str(error.missing_cfg_file or "").rpartition("/")
    options = sorted(error.options or ())
    if not group or not options:
        return ConfigError(first)
    known = suggestion(name, options) or f"; choose from: {', '.join(options)}"
    return ConfigError(f"conf/{group} has no {name}.yaml{known}")


def _of_value(lines: list[str]) -> str:
    """Return what is wrong, with the key where the lines name it."""
    key = next((line.removeprefix("full_key: ") for line in lines if line.startswith("full_key: ")), "")
    first = lines[0] if lines else "cannot be read"
    return f"{key}: {first}" if key and key not in first else first
