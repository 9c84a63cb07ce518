#!/usr/bin/env bash
# The main job on the embedded collection: installs into .venv, runs the experiment, prints the table.
# Further arguments go to the experiment, e.g. ./scripts/demo.sh train.epochs=3
set -euo pipefail
. "$(dirname "$0")/environment.sh"
prepare_environment ""
python -m experiments.run +exp=vn_connectivity "$@"
cat << 'NEXT'

Search with one of these models:
  mathamr index --from outputs/vn_connectivity circular --out outputs/index
  mathamr search index=outputs/index 'How do I find the roots of $x^2 + bx + c$?'
NEXT
