#!/usr/bin/env bash
# Record profiles on an H200, the most wanted first: bash gpu_trials/record_profiles.sh [SECONDS], from the repository's root.
#
# Each step has at most 60 s, and a failure stops nothing; no step begins after SECONDS (480): all end within 9 minutes.
# With OUT set, all profiles are also packed into $OUT/profiles.tar, beside the log.
python=${PYTHON:-python3}; limit=${1:-480}; log=${OUT:-/tmp}/profiles.log; : > "$log"

step() {  # CHAPTER PAIR:VERSION [SIZE]
    if (( SECONDS > limit )); then echo "left out, no time: $*" | tee -a "$log"; return; fi
    local begin=$SECONDS counters=--counters
    if [[ $2 =~ ^(double_buffering|batched_gemm|cuda_graphs) ]]; then counters=; fi  # the timeline is what is asked for
    timeout -k 5 60 "$python" benchmark.py --chapter "$1" --timeline "$2" ${3:+--size "$3"} --record $counters >> "$log" 2>&1
    echo "$(( SECONDS - begin )) s, status $?: $*" | tee -a "$log"
}

step 8 training_step:baseline
step 8 training_step:tf32
step 8 training_step:bf16
step 8 training_step:sdpa
step 8 training_step:foreach
step 8 training_step:fused
step 8 training_step:compiled
step 8 training_step:padded
step 8 training_step:graph
step 4 attention:baseline long/4096/d64/causal/bf16
step 5 sgp:baseline
step 5 sgp:written_out
step 5 sgp_backward:baseline
step 5 sgp_backward:written_out
step 5 sgp_backward:fused
step 1 double_buffering
step 4 matmul:specialized
step 4 matmul:persistent
step 4 matmul:gluon
step 4 batched_matmul:baseline
step 4 batched_matmul:one_launch
step 4 split_k:atomic medium/16x64x262144
step 4 split_k:split medium/16x64x262144
step 3 add_small
step 3 data_movement:library large/broadcast
step 3 data_movement:tuned large/broadcast
step 2 tensor_cores:bf16
step 2 tensor_cores:tile
step 2 tensor_cores:tf32
step 2 tensor_cores:baseline
step 2 transpose:baseline
step 2 transpose:optimized
step 1 arithmetic_intensity:unrolled
step 1 arithmetic_intensity:baseline
step 1 batched_gemm
step 1 cuda_graphs
step 2 atomics:baseline
step 7 gemv:baseline
step 7 gemv:rows
step 7 decode:graph
step 7 decode:fused
step 7 decode:dependent
step 4 matmul:baseline
step 4 matmul:tile
step 3 elementwise:library large/gelu/bf16
step 3 elementwise:tuned large/gelu/bf16
step 3 rms_norm:tuned
step 5 fcgp:by_grade
step 5 fcgp:baseline
step 4 attention:online
step 4 attention:tuned

find recorded/*/profiles -name "*.json.gz" -size +100k
du -sch recorded/*/profiles 2>/dev/null | tail -1
if [[ -n ${OUT:-} ]]; then tar -cf "$OUT/profiles.tar" recorded/*/profiles; fi
