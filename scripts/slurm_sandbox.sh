#!/usr/bin/env bash
# Start a Slurm of one node on this machine, to try batch scripts: real daemons, with all files in one folder.
#
#   eval "$(scripts/slurm_sandbox.sh up)"      # sets SLURM_CONF and SLURM_SANDBOX
#   sinfo
#   sbatch --wrap hostname
#   scripts/slurm_sandbox.sh down              # ends its jobs and daemons, removes the folder
#
# up takes the folder as an optional argument (default: a new one below /tmp); so does down (default: $SLURM_SANDBOX).
# Root is needed, and on Debian: apt-get install --no-install-recommends slurmctld slurmd slurm-client munge
# The node claims SANDBOX_CPUS processors (default: 8), 64 GB of memory and 8 GPUs, whatever the machine has, so that
# jobs start with the requests of slurm/. There is no accounting, so sacct shows nothing.
set -euo pipefail

fail() {
    echo "slurm_sandbox: $1" >&2
    exit 2
}

free_port() {
    local port
    for port in $(shuf -i 22000-32000 -n 50); do
        (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null || { echo "$port" && return; }
    done
    fail "no free port among 50 random ports from 22000 to 32000; try again"
}

write_configuration() {
    local folder="$1" host cpus="${SANDBOX_CPUS:-8}"
    host="$(hostname -s)"
    cat > "$folder/slurm.conf" << CONF
ClusterName=sandbox
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
SlurmdParameters=config_overrides
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,sched_min_interval=100000,batch_sched_delay=0
ReturnToService=2
KillWait=5
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cpus RealMemory=64000 Gres=gpu:8
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
    touch "$folder"/gpu{0..7} # files in place of devices
    echo "Name=gpu File=$folder/gpu[0-7]" > "$folder/gres.conf"
}

up() {
    local folder="$1" program
    [[ $(id -u) -eq 0 ]] || fail "the daemons need root; run this as root, or in a container"
    for program in munged slurmctld slurmd sinfo; do
        command -v "$program" > /dev/null || fail "$program is not installed; \
apt-get install --no-install-recommends slurmctld slurmd slurm-client munge"
    done
    if [[ -z $folder ]]; then
        folder="$(mktemp -d /tmp/slurm-sandbox.XXXXXX)"
    elif [[ -e $folder/slurm.conf ]]; then
        fail "$folder is in use; stop it first: scripts/slurm_sandbox.sh down $folder"
    fi
    mkdir -p "$folder/state" "$folder/spool"
    chmod 755 "$folder"
    folder="$(realpath "$folder")"
    write_configuration "$folder"
    (umask 077 && head -c 1024 /dev/urandom > "$folder/munge.key")
    export SLURM_CONF="$folder/slurm.conf"
    # --force: the folder may be in one that others can write to, such as /tmp.
    munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
        --seed-file="$folder/munged.seed" --log-file="$folder/munged.log" 2>> "$folder/start.log" ||
        give_up "$folder" munged.log
    slurmctld -c 2>> "$folder/start.log" || give_up "$folder" slurmctld.log
    slurmd -c 2>> "$folder/start.log" || give_up "$folder" slurmd.log
    for _ in $(seq 300); do
        if [[ $(sinfo --noheader --format=%t 2> /dev/null) == idle ]]; then
            echo "export SLURM_CONF=$folder/slurm.conf SLURM_SANDBOX=$folder"
            return
        fi
        sleep 0.2
    done
    give_up "$folder" slurmd.log slurmctld.log
}

give_up() {
    local folder="$1" log
    shift
    for log in start.log "$@"; do tail -n 5 "$folder/$log" >&2 || true; done
    down "$folder"
    fail "Slurm did not start; the last lines of its logs are printed above"
}

# Return whether process $1 ends within $2 tenths of a second. In a container without an init it remains as a zombie (Z).
ended() {
    for _ in $(seq "$2"); do
        [[ $(ps -o state= -p "$1") == [!Z] ]] || return 0
        sleep 0.1
    done
    return 1
}

down() {
    local folder="$1" daemon pid
    [[ -n $folder ]] || fail "SLURM_SANDBOX is not set; name the folder: scripts/slurm_sandbox.sh down FOLDER"
    [[ -e $folder/slurm.conf ]] || fail "$folder has no slurm.conf; name a folder that up has made"
    export SLURM_CONF="$folder/slurm.conf"
    if [[ -e $folder/slurmd.pid ]]; then
        timeout 10 scancel --user=root --full 2> /dev/null || true
        for _ in $(seq 50); do
            [[ -n $(timeout 5 squeue --noheader 2> /dev/null) ]] || break
            sleep 0.2
        done
    fi
    for daemon in slurmd slurmctld munged; do
        pid="$(cat "$folder/$daemon.pid" 2> /dev/null)" || continue
        kill "$pid" 2> /dev/null || continue
        ended "$pid" 10 && continue # slurmctld would take five seconds to save files that are deleted next
        kill -KILL "$pid" 2> /dev/null || continue
        ended "$pid" 50 || echo "slurm_sandbox: $daemon, process $pid, does not end" >&2
    done
    rm -rf "$folder"
}

case "${1:-}" in
    up) up "${2:-}" ;;
    down) down "${2:-${SLURM_SANDBOX:-}}" ;;
    *) fail "unknown command '${1:-}'; use up or down: $(sed -n 's/^#   //p' "$0" | head -n 1)" ;;
esac
