# Make .venv and install the project into it, with the extras given as $1. Sourced by demo.sh and test.sh.
# The installation is skipped if pyproject.toml has not changed since the last one with the same extras.
# PYTHON chooses the interpreter (3.11 to 3.13); VENV chooses a folder other than .venv.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# uv installs everything in a quarter of pip's time. It does not read pip's configuration, which may name other places of
# packages, so these are passed on.
install_with_uv() {
    local python="$1" extras="$2"
    "$python" -m pip install --quiet --disable-pip-version-check uv 2> /dev/null || return 1
    (
        settings="$("$python" -m pip config list)"
        place() {  # prints the value of a setting of pip, in a line
            local of value
            for of in :env: install global; do
                value="$(sed -n "s/^$of\.$1='\(.*\)'\$/\1/p" <<< "$settings" | sed 's/\\n/ /g; s/^ *//')"
                [ -z "$value" ] || { echo "$value" && return; }
            done
        }
        [ -z "$(place no-index)" ] || exit 1
        UV_FIND_LINKS="${UV_FIND_LINKS:-$(place find-links | tr ' ' ',')}"
        UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$(place index-url)}"
        UV_INDEX="${UV_INDEX:-$(place extra-index-url)}"
        UV_CONSTRAINT="${UV_CONSTRAINT:-$(place constraint)}"
        UV_INDEX_STRATEGY="${UV_INDEX_STRATEGY:-unsafe-best-match}"  # as pip chooses among several indexes
        for name in UV_FIND_LINKS UV_DEFAULT_INDEX UV_INDEX UV_CONSTRAINT UV_INDEX_STRATEGY; do
            [ -z "${!name}" ] || export "${name?}"
        done
        "$python" -m uv pip install --quiet --python "$python" -e ".${extras:+[$extras]}"
    ) || { echo "uv did not install MathAMR+; trying pip ..." >&2; return 1; }
}

install_with_pip() {
    local python="$1" extras="$2"
    # The pip of an older Python takes more than twice as long to choose releases. Without a newer one it does, too.
    "$python" -m pip install --quiet --disable-pip-version-check --upgrade pip 2> /dev/null || true
    "$python" -m pip install --quiet --disable-pip-version-check -e ".${extras:+[$extras]}"
}

prepare_environment() {
    local extras="$1" venv="${VENV:-.venv}" wanted
    if [ ! -x "$venv/bin/python" ]; then
        local python="${PYTHON:-}"
        if [ -z "$python" ]; then
            for python in python3 python3.13 python3.12 python3.11; do
                "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && break
                python=""
            done
        fi
        if [ -z "$python" ]; then
            echo "MathAMR+ needs Python 3.11 to 3.13; set PYTHON=/path/to/python3.13 and run this again." >&2
            return 1
        fi
        echo "Making an environment in $venv ..." >&2
        "$python" -m venv "$venv" || return 1
    fi
    wanted="$(cat pyproject.toml) $extras $(pwd)"
    if [ "$(cat "$venv/.installed-$extras" 2>/dev/null)" != "$wanted" ]; then
        echo "Installing MathAMR+ into $venv (the first time takes a few minutes) ..." >&2
        install_with_uv "$venv/bin/python" "$extras" || install_with_pip "$venv/bin/python" "$extras" || return 1
        printf '%s' "$wanted" > "$venv/.installed-$extras"
    fi
    # shellcheck source=/dev/null
    . "$venv/bin/activate"
}
