#!/usr/bin/env bash
# What limits the kernels of a script? Nsight Compute, where it is installed.
#
#     common/profiling/profile_cuda.sh SCRIPT NAME [ARGUMENTS ...]
#
# NAME is the report's name: results/<the script's folder>/NAME.ncu-rep in the repository.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=common/profiling/setup.sh
source "$here/setup.sh"

# Every launch is replayed once per group of counters, so only the first ones: a script that checks before it times shows
# all its kernels there.
launches=40

if (( $# < 2 )); then
    usage "profile_cuda.sh SCRIPT NAME [ARGUMENTS ...]"
fi
script=$1 name=$2
shift 2
check_script "$script"
if [[ ! $name =~ ^[A-Za-z0-9._-]+$ ]]; then
    fail "$name: a report's name is made of letters, digits, dots, dashes and underscores"
fi
if ! command -v ncu > /dev/null; then
    fail "ncu is not installed, nothing was profiled: install Nsight Compute, or use profile_pytorch.sh"
fi
report=$(report_path "$script" "$name")
# The clocks stay as they are: locking them needs root, and the course's times are measured without it.
ncu --clock-control none --set roofline --launch-count "$launches" --force-overwrite --export "$report" "$python" "$script" "$@"
echo "report: $report.ncu-rep"
