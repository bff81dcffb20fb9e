#!/bin/sh
# Installs Prescore's client from this action's repository into its own virtual environment.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
python3 -m venv "$RUNNER_TEMP/prescore"
"$RUNNER_TEMP/prescore/bin/pip" install --quiet \
    -c "$source/deploy/constraints.txt" "$source/service/client"
echo "prescore=$RUNNER_TEMP/prescore/bin/prescore" >>"$GITHUB_OUTPUT"
