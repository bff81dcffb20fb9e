#!/bin/sh
# Writes deploy/locks: what the images and the CI examples install, each file with its hash. Run it
# after a change of deploy/constraints.txt or of a list of packages; it asks the package index, and
# takes the versions of the constraints. Needs uv (`pip install uv`).
#
#   client.txt   the client, for the CI examples
#   api.txt      the image of the API
#   torch.txt    torch as the index has it, with CUDA, and what it needs
#   worker.txt   the image of the workers, without the torch of torch.txt and its CUDA
#   tools.txt    what lists an image's packages (SBOM)
set -eu
cd "$(dirname "$0")/.."
mkdir -p deploy/locks

# Both processors of Linux have the same packages; the hashes are those of all files of a version.
lock() {
    name=$1
    shift
    printf '%s\n' "$@" | uv pip compile - -c deploy/constraints.txt --generate-hashes \
        --python-version 3.11 --python-platform linux --no-header --no-annotate --quiet \
        --no-emit-package prescore --no-emit-package prescore-client $left_out \
        -o "deploy/locks/$name.txt"
}

client="prescore-client @ ./service/client"
left_out=
lock client "$client" "setuptools>=77"
lock api "$client" ".[service,otel,s3]" "setuptools>=77"
lock tools cyclonedx-bom
lock torch torch
left_out=$(sed -n 's/^\(torch\|triton\|nvidia-[^=]*\|cuda-[^=]*\)==.*/--no-emit-package \1/p' deploy/locks/torch.txt)
lock worker "$client" ".[workers,otel]" "setuptools>=77"
