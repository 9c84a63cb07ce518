#!/usr/bin/env bash
# Repeat the whole thesis on a cluster, as a chain of jobs from the posts to one report. The plan with its GPU hours is
# printed first.
#
#   slurm/thesis.sh --dry-run data=arqmath data.root=/data/ARQMath         # prints the plan and submits nothing
#   slurm/thesis.sh data=arqmath data.root=/data/ARQMath outputs=/scratch/outputs
#   PARSE='--corpus arqmath --root /data/ARQMath --formulas formulas.db --kinds question answer topic --tasks 1 2
#       --years 2020 2021 2022 --parser transition --option python=envs/transition/bin/python' \
#       slurm/thesis.sh data=arqmath data.root=/data/ARQMath
#
# Start it in the repository, on a login node. The arguments are passed to every experiment. Each experiment is a job
# without GPUs that makes its graphs, and then an array with one GPU for each element. Logs are in OUTPUTS/logs. Finished
# jobs are skipped, so the same command runs only missing jobs. With data=arqmath the settings are those of the thesis:
# topics of 2022, and train=thesis with data.regime=judged, or for the benchmark data.regime=full. Arguments replace
# them, e.g. data.regime=mini 'data.years=[2020,2021]' train=laptop for a part of ARQMath. Environment variables:
#
#   SEEDS        seeds of each condition, e.g. 42,43; default: those of each experiment (five; the benchmark: one)
#   GPUS         number of models trained at the same time; default: 4
#   EXPERIMENTS  names of the experiments; default: those of Tables 4.6 to 4.22
#   PARSE        arguments of mathamr build graphs for a neural parser, which first runs as an array of SHARDS tasks
#                (default: 16). Without PARSE, experiments use the embedded parser. Merged graphs are not parsed again;
#                to parse again, remove OUTPUTS/parsed. Before the merge, all jobs and models count as missing: finished
#                ones have other graphs
#   SECONDS_A_MODEL  seconds to train a model on your GPU; default: as in the thesis, seven epochs of 472.5 s
#                (Table 4.8), or of 69.2 minutes in the benchmark (Table 4.20)
set -euo pipefail

dry=false
if [[ ${1:-} == --dry-run ]]; then dry=true; shift; fi
python=${PYTHON:-.venv/bin/python}
gpus=${GPUS:-4}
shards=${SHARDS:-16}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
read -ra experiments <<< "${EXPERIMENTS:-formula_representation vn_structure vn_connectivity vn_initialization \
retrieval_strategy auxiliary_loss arqmath3_benchmark}"
outputs=outputs quote= # quotation marks that Hydra needs around the folder
for word in "$@"; do
    [[ $word == outputs=* ]] || continue
    outputs=${word#outputs=} quote=
    case $outputs in \"*\" | \'*\') quote=${outputs:0:1} outputs=${outputs:1:-1} ;; esac
done
export PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH}
cd "$here"
if ! command -v "$python" > /dev/null; then
    echo "Interpreter $python not found; install the project into .venv (scripts/demo.sh), or set PYTHON." >&2
    exit 2
fi

# Use the graphs of an earlier chain: the keys of its jobs depend on them, and merging would refuse to overwrite them.
given=("$@")
parsed=$outputs/parsed/collection.db
parses=false
if [[ -n ${PARSE:-} ]]; then
    if [[ -f $parsed ]]; then given+=("data.collection=$quote$parsed$quote"); else parses=true; fi
fi
unset JOBS # an exported one, e.g. for make, would be the number of elements in slurm/seeds_array.sbatch

# Set $settings to the thesis's settings for an experiment, without those that the arguments give.
choose_settings() { # EXPERIMENT, then the arguments
    local name=$1 regime=judged
    shift
    settings=()
    [[ -n ${SEEDS:-} ]] && settings+=("experiment.seeds=[$SEEDS]")
    [[ " $* " == *" data=arqmath "* ]] || return 0
    [[ $name == arqmath3_benchmark ]] && regime=full
    [[ " $*" == *" data.regime="* ]] || settings+=("data.regime=$regime")
    [[ " $*" == *" data.years="* ]] || settings+=('data.years=[2022]')
    [[ $name == arqmath3_benchmark || " $*" == *" train="* ]] || settings+=(train=thesis) # the benchmark has its own
}

# Count the jobs and models of each experiment; a model that two experiments share is trained once.
declare -A jobs known
total=0 left=0
printf '%-24s %6s %12s %8s\n' experiment jobs 'new models' hours
for name in "${experiments[@]}"; do
    choose_settings "$name" "$@"
    table=$("$python" -m experiments.run "+exp=$name" "${given[@]}" "${settings[@]}" job=list)
    jobs[$name]=0 new=0
    while IFS=$'\t' read -r job state trained model; do
        $parses && state=missing trained=missing # the list is that of the embedded parser's graphs
        [[ $job == *-seed* && $state != done ]] || continue
        jobs[$name]=$((jobs[$name] + 1))
        [[ -n $model && $trained != trained && -z ${known[$model]:-} ]] || continue
        known[$model]=1 new=$((new + 1))
    done <<< "$(awk -F '  +' -v OFS='\t' '{ print $1, $2, $3, $5 }' <<< "$table")"
    seconds=${SECONDS_A_MODEL:-3308}
    [[ $name == arqmath3_benchmark ]] && seconds=${SECONDS_A_MODEL:-29064}
    total=$((total + new * seconds)) left=$((left + jobs[$name]))
    printf '%-24s %6d %12d %8s\n' "$name" "${jobs[$name]}" "$new" "$(awk "BEGIN { printf \"%.1f\", $new * $seconds / 3600 }")"
done
awk "BEGIN { printf \"training: %.1f GPU hours, %.1f hours on $gpus GPUs; without parsing, encoding and search\n\", \
    $total / 3600, $total / 3600 / $gpus }"

((left)) || echo 'All jobs are finished; only the report is written again.'

number=0
$dry || mkdir -p "$outputs/logs"
submit() { # NAME of the job, then the arguments of sbatch; sets $last to the id of the job
    local what=$1 log=$outputs/logs/%x-%j.log
    shift
    [[ " $* " == *" --array="* ]] && log=$outputs/logs/%x-%A_%a.log
    # A job whose dependency has failed is cancelled: as a pending job it would hold up the rest of the chain.
    set -- "--job-name=$what" "--output=$log" --kill-on-invalid-dep=yes "$@"
    number=$((number + 1))
    if $dry; then
        last=JOB$number
        printf '%s: %s: sbatch%s\n' "$last" "$what" "$(printf ' %q' "$@")"
    else
        last=$(sbatch --parsable "$@")
        printf '%s: %s\n' "$last" "$what"
    fi
}

wrapped() { printf 'PYTHONPATH=%q ' "$here"; printf '%q ' "$python" "$@"; }
after=()
if $parses; then
    read -ra parse <<< "${PARSE//$'\n'/ }"
    submit parse "--array=1-$shards" "--export=ALL,SHARDS=$shards,OUT=$outputs/parsed" \
        slurm/build_collection.sbatch "${parse[@]}"
    parts=()
    for ((part = 1; part <= shards; part++)); do parts+=("$outputs/parsed/shard-$part.db"); done
    submit merge "--dependency=afterok:$last" --time=04:00:00 \
        --wrap "$(wrapped scripts/collection.py merge "$parsed" "${parts[@]}")"
    after=("--dependency=afterok:$last")
    given+=("data.collection=$quote$parsed$quote")
fi
for name in "${experiments[@]}"; do
    ((jobs[$name])) || continue
    choose_settings "$name" "$@"
    # One after the other: they share graphs, and models of equal settings.
    submit "prepare-$name" "${after[@]}" slurm/prepare.sbatch "+exp=$name" "${given[@]}" "${settings[@]}"
    submit "$name" "--dependency=afterok:$last" "--array=1-${jobs[$name]}%$gpus" slurm/seeds_array.sbatch \
        "+exp=$name" "${given[@]}" "${settings[@]}"
    after=("--dependency=afterany:$last")
done
folders=()
for name in "${experiments[@]}"; do folders+=("$outputs/$name"); done
submit report "${after[@]}" --time=00:30:00 \
    --wrap "$(wrapped -m experiments.report "${folders[@]}" --out "$outputs/report")"
