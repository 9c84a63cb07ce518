# Make .venv and install the project into it, with the extras given as $1. Sourced by demo.sh and test.sh.
# The installation is skipped if pyproject.toml has not changed since the last one with the same extras.
# PYTHON chooses the interpreter (3.11 or newer); VENV chooses a folder other than .venv.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

prepare_environment() {
    local extras="$1" venv="${VENV:-.venv}" wanted
    if [ ! -x "$venv/bin/python" ]; then
        local python="${PYTHON:-}"
        if [ -z "$python" ]; then
            for python in python3 python3.13 python3.12 python3.11; do
                "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break
                python=""
            done
        fi
        if [ -z "$python" ]; then
            echo "MathAMR+ needs Python 3.11 or newer; set PYTHON=/path/to/python3.11 and run this again." >&2
            return 1
        fi
        echo "Making an environment in $venv ..." >&2
        "$python" -m venv "$venv" || return 1
        # The pip of an older Python takes more than twice as long to choose releases. Without a newer one it does, too.
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade pip 2> /dev/null || true
    fi
    wanted="$(cat pyproject.toml) $extras $(pwd)"
    if [ "$(cat "$venv/.installed-$extras" 2>/dev/null)" != "$wanted" ]; then
        echo "Installing MathAMR+ into $venv (the first time takes a few minutes) ..." >&2
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e ".${extras:+[$extras]}" || return 1
        printf '%s' "$wanted" > "$venv/.installed-$extras"
    fi
    # shellcheck source=/dev/null
    . "$venv/bin/activate"
}
