#!/usr/bin/env bash
# Every check of the project: installs with [dev] into .venv, then ruff, mypy and pytest.
# Further arguments go to pytest, e.g. ./scripts/test.sh tests/graphs -k placeholder
set -euo pipefail
. "$(dirname "$0")/environment.sh"
prepare_environment dev
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" WANDB_MODE=disabled
ruff check .
ruff format --check .
mypy
pytest --numprocesses "${PYTEST_WORKERS:-auto}" "$@"
