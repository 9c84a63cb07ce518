#!/usr/bin/env bash
# The main job on the embedded collection: installs into .venv, runs the experiment, prints the table.
# Further arguments go to the experiment, e.g. ./scripts/demo.sh train.epochs=3
set -euo pipefail
. "$(dirname "$0")/environment.sh"
prepare_environment ""

# Two processes share the jobs, one thread each: sums are then the same on every machine.
export OMP_NUM_THREADS=1
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
log=$(mktemp)
python -m experiments.run +exp=vn_connectivity "$@" > "$log" 2>&1 &
python -m experiments.run +exp=vn_connectivity "$@" > /dev/null
wait $! || { cat "$log" >&2; exit 1; }
settings=()  # without what names conditions, jobs or the folder of the experiment above
for word in "$@"; do
    [[ "$word" =~ ^(job|[+~]*experiment\.(only|name|conditions)[^=]*)= ]] || settings+=("$word")
done
python -m experiments.run +exp=yardsticks ${settings[@]+"${settings[@]}"} > "$log" 2>&1 || { cat "$log" >&2; exit 1; }

python -m experiments.run +exp=vn_connectivity "$@"
echo
grep -E '^(Condition|bm25|untrained) ' "$log"
rm -f "$log"
cat << 'NEXT'

How to read it: nDCG' is 1 where every relevant answer comes first. Training is worth what a graph model has above the
untrained one; BM25 on the words is what a new method has to beat. A thousand docstrings are too few for that.

Search with one of these models (after . .venv/bin/activate):
  mathamr index --from outputs/vn_connectivity circular --out outputs/index
  mathamr search index=outputs/index 'How do I find the roots of $x^2 + bx + c$?'
NEXT
