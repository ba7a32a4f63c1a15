#!/bin/sh
# Installs the pinned packages and this project (editable) into .venv. Does nothing when nothing has changed since.
# Needs Python 3.11 or newer; takes uv when it is on PATH, else pip. PYTHON names another interpreter.
set -eu
cd "$(dirname "$0")/.."

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    candidates=${PYTHON:-python3.11 python3 python3.12 python3.13 python3.14}
    for candidate in $candidates; do
        if is_new_enough "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    echo "lakelib needs Python 3.11 or newer; none of these is: $candidates." >&2
    echo "Install it (Debian: apt install python3 python3-venv), or name one: PYTHON=/path/to/python3.11 make test" >&2
    return 1
}

make_environment() {
    python=$(find_python)
    if command -v uv >/dev/null; then
        uv venv --quiet --python "$python" .venv
    elif ! "$python" -m venv .venv; then
        rm -rf .venv
        echo "$python cannot make a virtual environment. On Debian: apt install python3-venv" >&2
        return 1
    fi
}

install_packages() {
    if command -v uv >/dev/null; then
        uv pip install --quiet --compile-bytecode --python .venv/bin/python --requirement requirements.txt
        uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
    else
        .venv/bin/python -m pip install --quiet --requirement requirements.txt
        .venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
    fi
}

# Where PYTHONDONTWRITEBYTECODE is set, every process would compile all that it imports. What has not changed is passed over.
compile_project() {
    .venv/bin/python -m compileall -q lakelib jobs dags infra || true
}

checksum() {
    { cat requirements.txt setup.cfg pyproject.toml infra/setup_env.sh; .venv/bin/python --version; pwd; } | sha256sum
}

is_new_enough .venv/bin/python || { rm -rf .venv; make_environment; }
if [ "$(checksum)" != "$(cat .venv/lakelib-setup.sha256 2>/dev/null || true)" ]; then
    echo "Installing into .venv …" >&2
    install_packages
    checksum > .venv/lakelib-setup.sha256
fi
compile_project
