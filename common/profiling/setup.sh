# What both profiling scripts share; sourced, not run.
# shellcheck shell=bash

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)

# An active environment first, then the one that `make` created, then whatever python there is.
# shellcheck disable=SC2034  # used by the scripts that source this
if [[ -z ${VIRTUAL_ENV:-}${CONDA_PREFIX:-} && -x $root/.venv/bin/python ]]; then
    python=$root/.venv/bin/python
else
    python=$(command -v python || command -v python3)
fi

fail() {
    echo "${0##*/}: $1" >&2
    exit 2
}

usage() {
    fail "usage: $1"
}

check_script() {
    if [[ $1 == -h || $1 == --help ]]; then
        sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"
        exit 0
    fi
    if [[ ! -f $1 ]]; then
        fail "$1: no such script"
    fi
}

# report_path SCRIPT NAME: where a report goes, without its ending; creates the folder.
report_path() {
    local folder
    folder=$root/results/$(basename -- "$(cd -- "$(dirname -- "$1")" && pwd)")
    mkdir -p -- "$folder"
    echo "$folder/$2"
}
