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
api_role=$(draw) janitor_role=$(draw) worker_role=$(draw)
hash=$(digest "$api")
drawn="$api $janitor $worker $postgres $api_role $janitor_role $worker_role"
if [ "${#drawn} ${#hash}" != "342 64" ]; then
    echo "expected od, tr, sha256sum and /dev/urandom to work; no password was made" >&2
    exit 1
fi

umask 077
mkdir "$folder"
sed -e "s/^user api on /&#$hash /" \
    -e "s/^user janitor on /&#$(digest "$janitor") /" \
    -e "s/^user worker on /&#$(digest "$worker") /" "$here/redis.acl" >"$folder/redis.acl"
printf %s "$postgres" >"$folder/postgres_password"
# Each piece knows its own user of Redis and its own role of PostgreSQL, and no other. The owner of
# the tables migrates them, and gives the roles their rights.
database() { echo "PRESCORE_DATABASE_URL=postgresql://$1:$2@postgres:5432/prescore"; }
variables() {
    echo "PRESCORE_REDIS_URL=redis://$1:$2@redis:6379/0"
    database "prescore_$1" "$3"
    echo "CREATE ROLE prescore_$1 LOGIN PASSWORD '$3';" >>"$folder/roles.sql"
}
variables api "$api" "$api_role" >"$folder/api.env"
variables janitor "$janitor" "$janitor_role" >"$folder/janitor.env"
variables worker "$worker" "$worker_role" >"$folder/worker.env"
database prescore "$postgres" >"$folder/migrate.env"
# Users inside the containers read these; on this machine the folder's mode protects them.
chmod 444 "$folder/redis.acl" "$folder/postgres_password" "$folder/roles.sql"
