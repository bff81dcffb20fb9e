#!/bin/sh
# Everything a change needs: format, lint, types, import contracts, tests. Makes its own
# virtual environment (.venv) from the project's files; needs python3.11 and python3.11-venv.
#
#   sh tests/run.sh            what CI runs, under ten minutes
#   sh tests/run.sh --all      the slow tests too
#   sh tests/run.sh --bench    the engine's benchmarks: they print and record, they do not judge
#   sh tests/run.sh --bench-service    the service's
#
# Anything else goes to pytest: sh tests/run.sh -k prefix -x
set -eu
cd "$(dirname "$0")/.."

marks="not slow"
mode="${1:-}"
case "$mode" in
    --all) marks=""; shift ;;
    --bench | --bench-service) shift ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

[ -x .venv/bin/python ] || "${PYTHON:-python3.11}" -m venv .venv

# Installed anew when what is installed has changed, and only then.
wanted=$(cat pyproject.toml service/client/pyproject.toml deploy/constraints.txt | cksum)
if [ "$(cat .venv/installed-dev 2>/dev/null || true)" != "$wanted" ]; then
    .venv/bin/python -m pip install --quiet -c deploy/constraints.txt \
        -e ./service/client -e '.[service,workers,dev]'
    echo "$wanted" >.venv/installed-dev
fi
PATH="$PWD/.venv/bin:$PATH"

case "$mode" in
    --bench) PYTHONPATH=. exec python tests/benchmarks/run.py "$@" ;;
    --bench-service) PYTHONPATH=. exec python tests/benchmarks/serving.py "$@" ;;
esac

ruff format --check .
ruff check .
mypy
(cd service/client && mypy)
lint-imports
exec python -m pytest -m "$marks" "$@"
