#!/bin/sh
# Builds the guide as a site with search, which loads nothing from other hosts. A broken link is an
# error. Needs MkDocs with the theme Material: pip install -c deploy/constraints.txt '.[dev]'
#
#   sh deploy/guide/site.sh            writes build/guide
#   sh deploy/guide/site.sh --serve    and serves it at http://127.0.0.1:8001, until Ctrl-C
set -eu
cd "$(dirname "$0")/../.."
PATH="$PWD/.venv/bin:$PATH"

rm -rf build/guide-pages
python deploy/guide/site_files.py build/guide-pages
cp deploy/guide/site.css build/guide-pages/
NO_MKDOCS_2_WARNING=1 python -m mkdocs build --quiet --strict --clean -f deploy/guide/mkdocs.yml
echo "The guide: $PWD/build/guide/index.html (search needs --serve)"
if [ "${1:-}" = --serve ]; then
    echo "http://127.0.0.1:8001"
    exec python -m http.server --bind 127.0.0.1 --directory build/guide 8001
fi
