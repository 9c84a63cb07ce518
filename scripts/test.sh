#!/usr/bin/env bash
# Run every check of the project: installs it with [dev] into .venv, then runs ruff, mypy and pytest.
# Arguments are passed to pytest, e.g. ./scripts/test.sh tests/graphs -k placeholder
#
# ./scripts/test.sh --quick runs the checks that a change is most likely to break, in less than a minute on two cores: ruff;
# imports and their order; the English of messages; posts, graphs, encoder, losses, search, measures, plans and reports,
# with their doctests. It omits mypy, and nearly all tests that train, parse with spaCy, start Slurm or a browser, or read
# the shared data. Run all checks before a change is merged.
set -euo pipefail
. "$(dirname "$0")/environment.sh"
prepare_environment dev
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" WANDB_MODE=disabled
unset PYTHONDONTWRITEBYTECODE  # otherwise each process that a test starts compiles the project again
quick=(
    tests/test_architecture.py tests/test_english.py tests/graphs/graph tests/graphs/corpus/text tests/mathamr/test_maxsim.py
    tests/mathamr/model tests/mathamr/evaluation tests/mathamr/training/test_checkpoint.py tests/mathamr/systems
    tests/mathamr/training/test_losses.py tests/mathamr/training/test_pairs.py tests/mathamr/retrieval/test_exact.py
    tests/graphs/corpus/test_arqmath.py
    tests/experiments/test_plan.py tests/experiments/configuration/test_schema.py tests/experiments/test_job.py
    tests/experiments/test_models.py tests/experiments/report tests/scripts/test_evaluate.py tests/scripts/test_commands.py
    graphs/corpus graphs/graph graphs/formulas experiments
    -m "not slow and not slurm and not browser and not shared and not weights"
)
folder_in_memory() {  # prints a new folder, or fails
    local free room=4000000 folder  # kB
    free="$({ df --output=avail /dev/shm | tail -n 1; awk '/^MemAvailable/ {print $2}' /proc/meminfo; } 2> /dev/null | sort -n | head -n 1)"
    [ "${free:-0}" -gt "$room" ] && folder="$(mktemp -d /dev/shm/mathamr-tests-XXXXXX)" || return 1
    printf '#!/bin/sh\n' > "$folder/program" && chmod +x "$folder/program"
    "$folder/program" 2> /dev/null || { rm -r "$folder" && return 1; }
    echo "$folder"
}
ruff check .
ruff format --check .
if [ "${1:-}" = --quick ]; then
    shift
    set -- "${quick[@]}" "$@"
else
    # mypy needs only one core, so it runs in parallel with the tests, which use the other cores.
    typed="$(mktemp)"
    mypy > "$typed" 2>&1 &
    mypy=$!
    trap 'kill "$mypy" 2> /dev/null || true; rm -f "$typed"' EXIT
fi
# In a fresh clone each worker would compile the same packages and tests.
if [ ! -d tests/__pycache__ ]; then
    pytest --collect-only --quiet "$@" > /dev/null || true
fi
# A commit of a database waits for the disk. So the tests' files lie in memory, if there is room and programs may run there.
if [ -z "${PYTEST_DEBUG_TEMPROOT:-}" ] && memory="$(folder_in_memory)"; then
    export PYTEST_DEBUG_TEMPROOT="$memory"
fi
code=0
pytest --numprocesses "${PYTEST_WORKERS:-auto}" --dist worksteal "$@" || code=$?  # tests of one folder share fixtures
if [ -n "${mypy:-}" ] && [ "$code" -ne 2 ]; then  # 2: stopped by Ctrl-C, or before the first test
    wait "$mypy" || code=$?
    cat "$typed"
fi
if [ -n "${memory:-}" ] && [ "$code" -eq 0 ]; then
    rm -rf "$memory"
elif [ -n "${memory:-}" ]; then
    echo "files of the tests: $memory" >&2
fi
exit "$code"
