#!/bin/sh
# Makes the random passwords of a fleet, which compose.yaml reads from deploy/secrets/.
#
#   sh deploy/secrets.sh            write to deploy/secrets, which must not exist yet
#   sh deploy/secrets.sh FOLDER     write to another folder
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder="${1:-$here/secrets}"

draw() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
digest() { printf %s "$1" | sha256sum | cut -d' ' -f1; }
api=$(draw) janitor=$(draw) worker=$(draw) postgres=$(draw)
hash=$(digest "$api")
if [ "${#api} ${#janitor} ${#worker} ${#postgres} ${#hash}" != "48 48 48 48 64" ]; then
    echo "expected od, tr, sha256sum and /dev/urandom to work; no password was made" >&2
    exit 1
fi

umask 077
mkdir "$folder"
sed -e "s/^user api on /&#$hash /" \
    -e "s/^user janitor on /&#$(digest "$janitor") /" \
    -e "s/^user worker on /&#$(digest "$worker") /" "$here/redis.acl" >"$folder/redis.acl"
printf %s "$postgres" >"$folder/postgres_password"
# Each piece knows its own user of Redis, and no other.
variables() {
    echo "PRESCORE_REDIS_URL=redis://$1:$2@redis:6379/0"
    echo "PRESCORE_DATABASE_URL=postgresql://prescore:$postgres@postgres:5432/prescore"
}
variables api "$api" >"$folder/api.env"
variables janitor "$janitor" >"$folder/janitor.env"
variables worker "$worker" >"$folder/worker.env"
# Users inside the containers read these two; on this machine the folder's mode protects them.
chmod 444 "$folder/redis.acl" "$folder/postgres_password"
