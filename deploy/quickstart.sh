#!/bin/sh
# Prescore on a fresh machine: a virtual environment, a pinned installation, the demo.
# Needs python3.11 and python3.11-venv, and nothing else.
#
#   sh deploy/quickstart.sh            install, then show the demo
#   sh deploy/quickstart.sh --once     install, show the demo, and stop the service at the end
set -eu
cd "$(dirname "$0")/.."

[ -x .venv/bin/python ] || "${PYTHON:-python3.11}" -m venv .venv

# Install again only when the lists of packages have changed; a developer's environment is used too.
wanted=$(cat pyproject.toml service/client/pyproject.toml deploy/constraints.txt | cksum)
if [ "$(cat .venv/installed-dev 2>/dev/null || true)" != "$wanted" ]; then
    echo "Installing (torch is large: the first time takes some minutes) …"
    .venv/bin/python -m pip install --quiet -c deploy/constraints.txt \
        ./service/client '.[service,workers]'
fi
exec .venv/bin/prescore demo "$@"
