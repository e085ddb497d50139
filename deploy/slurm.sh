#!/bin/bash
# weft on a Slurm cluster. Shortly before the time limit a training saves and the job is queued again; it then
# resumes bit-identically. The guide is docs/guides/scale.md.
#
#   sbatch deploy/slurm.sh train my.yaml --run runs/my                      one process
#   sbatch --nodes=2 --ntasks-per-node=4 deploy/slurm.sh train my.yaml --run runs/my     eight processes, one run
#   sbatch --array=1-5 deploy/slurm.sh train my.yaml --run runs/my          seeds 1 to 5: runs/my-seed-1, ...
#   sbatch --array=1-8 deploy/slurm.sh tune my.yaml --trials 100 --name my --storage postgresql://tuner@db/weft
#
#SBATCH --job-name=weft
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --signal=USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=weft-%j.log
set -u
weft=${WEFT:-weft}
[ $# -ge 2 ] || { echo "usage: sbatch [--array=1-5] deploy/slurm.sh train|tune RECIPE ..." >&2; exit 2; }
name=$1 recipe=$2 task=${SLURM_ARRAY_TASK_ID:-}

option() { # the value of an option among the other words, else $2
    local wanted=$1 found=$2 before=
    for word in "${words[@]}"; do
        [ "$before" = "$wanted" ] && found=$word
        before=$word
    done
    echo "$found"
}

words=()
for word in "$@"; do
    case $word in
        --run=* | --name=* | --storage=* | --study=*) words+=("${word%%=*}" "${word#*=}") ;;
        *) words+=("$word") ;;
    esac
done
stem=$(basename "$recipe" .yaml)
if [ "$name" = train ] && [ -n "$task" ]; then
    run=$(option --run "")
    [ -n "$run" ] || { run=runs/$stem; words+=(--run "$run"); }
    for at in "${!words[@]}"; do
        [ "${words[$at]}" = --run ] && words[at + 1]=$run-seed-$task
    done
    words+=("training.seed=$task")
elif [ "$name" = tune ] && [ -n "$task" ]; then
    for needed in --storage --name; do
        [ -n "$(option $needed "")" ] || { echo "slurm.sh: an array of tune needs $needed, which all share" >&2; exit 2; }
    done
    [ -z "$(option --study "")" ] || { echo "slurm.sh: leave out --study; each task has its own folder" >&2; exit 2; }
    words+=(--study "runs/$stem-tuned-$task" --seed "$task")
fi
if [ "$name" = train ] && [ "${SLURM_NTASKS:-1}" -gt 1 ]; then
    words+=(--processes "$SLURM_NTASKS")
fi

srun --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" "$weft" "${words[@]}"
code=$?
if [ "$code" -eq 138 ]; then # 128 and SIGUSR1: the time limit is near, and progress is saved
    echo "slurm.sh: saved before the time limit; the job is queued again"
    scontrol requeue "$SLURM_JOB_ID"
    exit 0
fi
exit "$code"
