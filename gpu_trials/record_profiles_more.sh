#!/usr/bin/env bash
# Open ends that record_profiles.sh does not cover, on a GPU machine, from the repository's root, after that script:
#   PYTHONPATH=site:. PYTHON=python3.12 bash record_profiles_more.sh
# Most important first. It begins nothing after 200 s and ends within 240 s; FROM=n begins at that step.
PYTHON=${PYTHON:-python} FROM=${FROM:-1} EXTRA=${EXTRA:---record}
step=0 left="" problems=0
out=$(mktemp)
record() {
  step=$((step + 1))
  if (( step < FROM )); then return; fi
  if (( SECONDS > 200 )); then left="$left $step"; return; fi
  begin=$SECONDS
  timeout -k 5 $((235 - SECONDS)) "$PYTHON" benchmark.py $EXTRA "$@" > "$out" 2>&1
  status=$?
  echo "step $step, $((SECONDS - begin)) s, status $status: $*"
  grep -h "recorded in\|no counters\|^benchmark.py" "$out"
  if (( status )); then problems=$((problems + 1)); fi
}
COUNTERS=${COUNTERS---counters}
with() { record --timeline "$2" --chapter "$1" $COUNTERS; }
with 2 tensor_cores:bf16
with 2 tensor_cores:tile
with 4 matmul:specialized
with 4 matmul:persistent
with 4 batched_matmul:one_launch
with 4 split_k:atomic
with 4 split_k:split
with 7 gemv:baseline
with 7 gemv:rows
with 2 atomics:baseline
with 2 occupancy
record --timeline batched_gemm --chapter 1
record --timeline sgp:written_out --chapter 5 --size sweep/3d/1024x128
with 4 attention_backward:one_pass
with 4 matmul:baseline
du -sh recorded/*/profiles
echo "$SECONDS s, $problems steps with a problem${left:+, not begun:$left}"
