#!/usr/bin/env bash
# Run the demo on the embedded collection: installs into .venv, runs an experiment, and prints its table.
# Arguments are passed to the experiment, e.g. ./scripts/demo.sh train.epochs=6
set -euo pipefail
. "$(dirname "$0")/environment.sh"
prepare_environment ""

# Two processes share the jobs. Each has one thread, so sums do not depend on the number of cores.
export OMP_NUM_THREADS=1
logs=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$logs"' EXIT
set -- train.epochs=4 'experiment.seeds=[42,43,44]' "$@"  # later settings win
settings=()  # settings of the yardsticks: all but those for conditions, seeds, jobs and the folder of the experiment
for word in "$@"; do
    [[ "$word" =~ ^(job|[+~]*experiment\.(only|name|conditions|seeds)[^=]*)= ]] || settings+=("$word")
done
{
    python -m experiments.run +exp=vn_connectivity "$@" > "$logs/first" 2> "$logs/messages" &&
        python -m experiments.run +exp=yardsticks "${settings[@]}" > "$logs/yardsticks" 2>> "$logs/messages"
} &
python -m experiments.run +exp=vn_connectivity "$@" > "$logs/second" || { cat "$logs/second"; exit 1; }
wait $! || { cat "$logs/messages" >&2; exit 1; }

# The process that ended first did not see the last job, so its table may be incomplete.
table=$(grep -LE ', seed [0-9]+: ' "$logs/first" "$logs/second" | head -n 1 || true)
cat "${table:-$logs/second}"
echo
grep -E '^(Condition|bm25|untrained) ' "$logs/yardsticks"
cat << 'NEXT'

How to read the table: nDCG' is 1 if all relevant answers come first. The difference between a graph model and the untrained
one is the effect of training. BM25 over words is the score to beat; a thousand docstrings are too few for that.

To search with one of these models (after . .venv/bin/activate):
  mathamr index --from outputs/vn_connectivity circular --out outputs/index
  mathamr search index=outputs/index 'How do I find the roots of $x^2 + bx + c$?'
NEXT
