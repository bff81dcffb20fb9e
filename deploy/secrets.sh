#!/bin/sh
# Makes the random passwords of a fleet, which compose.yaml reads from deploy/secrets/.
#
#   sh deploy/secrets.sh            write to deploy/secrets, which must not exist yet
#   sh deploy/secrets.sh FOLDER     write to another folder
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder="${1:-$here/secrets}"

draw() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
redis=$(draw)
postgres=$(draw)
hash=$(printf %s "$redis" | sha256sum | cut -d' ' -f1)
if [ "${#redis} ${#postgres} ${#hash}" != "48 48 64" ]; then
    echo "expected od, tr, sha256sum and /dev/urandom to work; no password was made" >&2
    exit 1
fi

umask 077
mkdir "$folder"
sed "s/^user prescore on /&#$hash /" "$here/redis.acl" >"$folder/redis.acl"
printf %s "$postgres" >"$folder/postgres_password"
cat >"$folder/prescore.env" <<END
PRESCORE_REDIS_URL=redis://prescore:$redis@redis:6379/0
PRESCORE_DATABASE_URL=postgresql://prescore:$postgres@postgres:5432/prescore
END
# Users inside the containers read these two; on this machine the folder's mode protects them.
chmod 444 "$folder/redis.acl" "$folder/postgres_password"
