#!/bin/sh
# Prescore's client, from the checkout that this action is part of, in an environment of its own.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
python3 -m venv "$RUNNER_TEMP/prescore"
"$RUNNER_TEMP/prescore/bin/pip" install --quiet \
    -c "$source/deploy/constraints.txt" "$source/service/client"
echo "prescore=$RUNNER_TEMP/prescore/bin/prescore" >>"$GITHUB_OUTPUT"
