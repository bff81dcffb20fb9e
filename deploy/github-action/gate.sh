#!/bin/sh
# Runs `prescore gate` of the client that install.sh has installed, with the action's inputs as
# options; each line of an input is one argument.
set -eu

words() { # the lines of $2, each with $1 in front
    while IFS= read -r line || [ -n "$line" ]; do
        line=$(printf %s "$line" | sed 's/^[[:space:]]*//; s/[[:space:]]*$//')
        [ -z "$line" ] || printf '%s\n' "$1$line"
    done <<END
$2
END
}

set -- --dataset "$DATASET" --junit "$JUNIT"
[ -z "${TARGET:-}" ] || set -- "$TARGET" "$@"
[ -z "${COLUMNS_FILE:-}" ] || set -- "$@" --columns "$COLUMNS_FILE"
[ -z "${CAPTIONS_FILE:-}" ] || set -- "$@" --captions "$CAPTIONS_FILE"
[ -z "$BASELINE" ] || set -- "$@" --baseline "$BASELINE"
[ -z "${IF_NO_BASELINE:-}" ] || set -- "$@" --if-no-baseline "$IF_NO_BASELINE"
options=$(words --gate= "$GATES" && words "" "$ARGUMENTS")
IFS='
'
set -f
exec "$CLIENT/bin/python" -I "$CLIENT/bin/prescore" gate "$@" $options
