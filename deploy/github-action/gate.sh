#!/bin/sh
# Inputs to options of `prescore gate`; a line is a word, whatever is in it.
set -eu

words() { # lines of $2, each with the option $1 before it, if there is one
    while IFS= read -r line || [ -n "$line" ]; do
        line=$(printf %s "$line" | sed 's/^[[:space:]]*//; s/[[:space:]]*$//')
        [ -z "$line" ] || printf '%s\n' "$1$line"
    done <<END
$2
END
}

set -- "$TARGET" --dataset "$DATASET" --junit "$JUNIT"
[ -z "$BASELINE" ] || set -- "$@" --baseline "$BASELINE"
options=$(words --gate= "$GATES" && words "" "$ARGUMENTS")
IFS='
'
set -f
exec "${PRESCORE:-prescore}" gate "$@" $options
