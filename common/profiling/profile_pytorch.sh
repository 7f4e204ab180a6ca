#!/usr/bin/env bash
# Where does the time of a script go? Nsight Systems where it is installed, else torch.profiler.
#
#     common/profiling/profile_pytorch.sh SCRIPT [ARGUMENTS ...]
#
# The report lies under results/<the script's folder>/ in the repository.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=common/profiling/setup.sh
source "$here/setup.sh"

if (( $# < 1 )); then
    usage "profile_pytorch.sh SCRIPT [ARGUMENTS ...]"
fi
script=$1
shift
check_script "$script"
report=$(report_path "$script" "$(basename -- "$script" .py)")

if command -v nsys > /dev/null; then
    nsys profile --trace=cuda,nvtx,osrt --force-overwrite=true --output="$report" "$python" "$script" "$@"
    echo "report: $report.nsys-rep"
else
    echo "nsys is not installed: profiling with torch.profiler"
    "$python" "$here/torch_profile.py" "$report.trace.json.gz" "$script" "$@"
fi
