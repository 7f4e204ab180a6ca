#!/usr/bin/env bash
# Records chapter 8's profiles of chapters 1 to 7 on a GPU machine, from the repository's root:
#   PYTHONPATH=site:. bash record_profiles.sh            (PYTHON=python3.12 names another Python)
# Timelines first, then counters (ncu). It begins nothing after 200 s, so that it ends within 240 s; what it did not begin
# is named at the end, and `FROM=n` begins at that step. Results: recorded/<device>/profiles/.
PYTHON=${PYTHON:-python}
FROM=${FROM:-1}
step=0
left=""
problems=0
record() {
  step=$((step + 1))
  if (( step < FROM )); then return; fi
  if (( SECONDS > 200 )); then left="$left $step"; return; fi
  begin=$SECONDS
  timeout -k 5 $((238 - SECONDS)) "$PYTHON" benchmark.py --record "$@" > ./record_profile.out 2> ./record_profile.err
  status=$?
  echo "step $step, $((SECONDS - begin)) s, status $status: $*"
  grep -h "recorded in\|: .*no counters\|^benchmark.py" ./record_profile.out ./record_profile.err
  if (( status )); then problems=$((problems + 1)); fi
}
record --timeline attention:baseline --chapter 4 --size long/4096/d64/causal/bf16
record --timeline sgp --chapter 5
record --timeline sgp_backward --chapter 5
record --timeline double_buffering --chapter 1
record --timeline cuda_graphs --chapter 1
record --timeline add_small --chapter 3
record --timeline decode --chapter 7
record --timeline data_movement --chapter 3 --size large/broadcast
record --timeline pinned_memory --chapter 1
record --timeline layer --chapter 5
record --timeline arithmetic_intensity --chapter 1 --counters
record --timeline sgp_backward:fused --chapter 5 --counters
record --timeline matmul:specialized --chapter 4 --counters
record --timeline matmul:persistent --chapter 4 --counters
record --timeline coalescing --chapter 1 --counters
record --timeline bank_conflicts --chapter 2 --counters
record --timeline divergence --chapter 2 --counters
du -sh recorded/*/profiles
echo "$SECONDS s, $problems steps with a problem${left:+, not begun:$left}"
