#!/bin/sh
# Installs Prescore's client from this action's repository into a new folder of its own.
#
# Python runs isolated (-I) here and in gate.sh: else a module of the workspace's, such as a venv.py
# or what PYTHONPATH names, would be imported, and could read the key or let every gate pass. pip
# starts another Python, which is not isolated, to build the client. What the client needs has hashes.
set -eu
unset PYTHONPATH PYTHONHOME
source=$(cd "$(dirname "$0")/../.." && pwd)
client=$(mktemp -d "$RUNNER_TEMP/prescore.XXXXXX")
python3 -I -m venv "$client"
"$client/bin/python" -I -m pip install --quiet --no-deps --require-hashes \
    -r "$source/deploy/locks/client.txt"
"$client/bin/python" -I -m pip install --quiet --no-index --no-deps --no-build-isolation \
    "$source/service/client"
echo "client=$client" >>"$GITHUB_OUTPUT"
