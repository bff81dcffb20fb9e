#!/bin/sh
# Everything a change needs: format, lint, types, import contracts, tests. Makes its own
# virtual environment (.venv) from the project's files; needs python3.11 and python3.11-venv.
#
#   sh tests/run.sh            what CI runs, five minutes on two quiet cores
#   sh tests/run.sh --quick    a minute: without tests that start processes, or compute for long
#   sh tests/run.sh --all      each night: the slow tests and parity with published scores too, with
#                              packages that only they need
#   sh tests/run.sh --bench    the benchmarks of the workers: they print and record, and never fail
#   sh tests/run.sh --bench-service    the benchmarks of the service
#
# Anything else goes to pytest, after --quick or --all or alone: sh tests/run.sh -k prefix -x
# Tests run in four processes, and in one where something goes to pytest: -n 4 is yours to ask for.
# Four, on two cores: each of them waits half of the time, for sockets, disks and recoveries.
set -eu
cd "$(dirname "$0")/.."

marks="not slow"
parts="tests --ignore tests/parity"
mode="${1:-}"
case "$mode" in
    --quick) marks="not slow and not processes and not long"; shift
        export HYPOTHESIS_PROFILE="${HYPOTHESIS_PROFILE:-few}" ;;
    --all) marks=""; parts=tests; shift ;;
    --bench | --bench-service) shift ;;
    -h | --help) sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

[ -x .venv/bin/python ] || "${PYTHON:-python3.11}" -m venv .venv

# Install again only when the lists of packages have changed.
wanted=$(cat pyproject.toml service/client/pyproject.toml deploy/constraints.txt | cksum)
if [ "$(cat .venv/installed-dev 2>/dev/null || true)" != "$wanted" ]; then
    .venv/bin/python -m pip install --quiet -c deploy/constraints.txt \
        -e ./service/client -e '.[service,workers,dev]'
    echo "$wanted" >.venv/installed-dev
fi
if [ "$mode" = --all ] && [ "$(cat .venv/installed-trials 2>/dev/null || true)" != "$wanted" ]; then
    if .venv/bin/python -m pip install --quiet -c deploy/constraints.txt -e '.[trials]'; then
        echo "$wanted" >.venv/installed-trials
    else
        echo "The packages of the extra 'trials' cannot be installed: what needs them is skipped." >&2
    fi
fi
PATH="$PWD/.venv/bin:$PATH"
unset PYTHONDONTWRITEBYTECODE # every process of every test would compile our modules anew
python -m compileall -q service workers # confined ones cannot keep what they compile
export OMP_NUM_THREADS=1 # the tests share the cores: threads of one process wait for another's

case "$mode" in
    --bench) PYTHONPATH=. exec python tests/benchmarks/run.py "$@" ;;
    --bench-service) PYTHONPATH=. exec python tests/benchmarks/serving.py "$@" ;;
esac

ruff format --check .
ruff check .
lint-imports

# Types take half a minute where nothing is kept of an earlier run, and need none of the tests: they
# are checked meanwhile, and what they say is shown at the end.
types=$(mktemp) checking=
files= # in memory, if what is written is to be there: the quick ones write little, and wait for disks
trap 'kill "$checking" 2>/dev/null || :; rm -rf "$types" "$files"' EXIT
mypy >"$types" 2>&1 &
checking=$!
free=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
if [ "$mode" = --quick ] && [ "${free:-0}" -gt 2000000 ]; then
    files=$(mktemp -d /dev/shm/prescore-tests.XXXXXX) || files=
    export PYTEST_DEBUG_TEMPROOT="${files:-${TMPDIR:-/tmp}}"
fi

# Who runs what: tests/helpers/sharing.py.
[ $# -gt 0 ] || set -- -n 4
failed=0
# shellcheck disable=SC2086  several words
python -m pytest -m "$marks" $parts "$@" || failed=$?
# Deadlines depend on what else the cores do: a few that failed beside others run once more, alone.
if [ "$failed" = 1 ] && [ "$*" = "-n 4" ]; then
    echo "run.sh: what failed beside other tests is run once more by itself; mend what fails often" >&2
    failed=0
    # shellcheck disable=SC2086
    timeout 600 python -m pytest -m "$marks" $parts --last-failed -n 0 --maxfail 5 || failed=1
fi
wait "$checking" || failed=1
cat "$types"
exit "$failed"
