#!/bin/sh
# Installs Prescore's client from this action's repository into a new folder of its own.
#
# Python runs isolated (-I) here and in gate.sh: else a module of the workspace's, such as a venv.py
# or what PYTHONPATH names, would be imported, and could read the key or let every gate pass. pip
# starts another Python, which is not isolated, to build the client.
set -eu
unset PYTHONPATH PYTHONHOME
source=$(cd "$(dirname "$0")/../.." && pwd)
client=$(mktemp -d "$RUNNER_TEMP/prescore.XXXXXX")
python3 -I -m venv "$client"
"$client/bin/python" -I -m pip install --quiet \
    -c "$source/deploy/constraints.txt" "$source/service/client"
echo "client=$client" >>"$GITHUB_OUTPUT"
