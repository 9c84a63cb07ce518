#!/usr/bin/env bash
# The main job on the embedded collection: installs into .venv, runs the experiment, prints the table.
# Further arguments go to the experiment, e.g. ./scripts/demo.sh train.epochs=6
set -euo pipefail
. "$(dirname "$0")/environment.sh"
prepare_environment ""

# Two processes share the jobs, one thread each: sums are then the same on every machine.
export OMP_NUM_THREADS=1
logs=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$logs"' EXIT
set -- train.epochs=4 'experiment.seeds=[42,43,44]' "$@"  # later settings win
settings=()  # of the yardsticks, without those for conditions, seeds, jobs and the folder of the experiment
for word in "$@"; do
    [[ "$word" =~ ^(job|[+~]*experiment\.(only|name|conditions|seeds)[^=]*)= ]] || settings+=("$word")
done
{
    python -m experiments.run +exp=vn_connectivity "$@" > "$logs/first" 2> "$logs/messages" &&
        python -m experiments.run +exp=yardsticks "${settings[@]}" > "$logs/yardsticks" 2>> "$logs/messages"
} &
python -m experiments.run +exp=vn_connectivity "$@" > "$logs/second" || { cat "$logs/second"; exit 1; }
wait $! || { cat "$logs/messages" >&2; exit 1; }

# The process that ended first did not see the last job.
table=$(grep -LE ', seed [0-9]+: ' "$logs/first" "$logs/second" | head -n 1 || true)
cat "${table:-$logs/second}"
echo
grep -E '^(Condition|bm25|untrained) ' "$logs/yardsticks"
cat << 'NEXT'

How to read it: nDCG' is 1 if every relevant answer comes first. The difference between a graph model and the untrained one
is the effect of training; BM25 on the words is the score to beat. A thousand docstrings are too few for that.

Search with one of these models (after . .venv/bin/activate):
  mathamr index --from outputs/vn_connectivity circular --out outputs/index
  mathamr search index=outputs/index 'How do I find the roots of $x^2 + bx + c$?'
NEXT
