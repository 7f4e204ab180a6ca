# profs.sh END LOG: steps "CHAPTER PAIR:VERSION SIZE counters|-" on stdin, none begins after END seconds
end=$1; log=$2
while read -r chapter what size how; do
  [ -z "$chapter" ] && continue
  if (( SECONDS + START > end )); then echo "left out: $chapter $what $size" >> $log; continue; fi
  b=$SECONDS; c=; [ "$how" = counters ] && c=--counters; s=; [ "$size" != - ] && s="--size $size"
  timeout -k 5 75 python3 benchmark.py --chapter $chapter --timeline $what $s --record $c < /dev/null > /tmp/one.$$ 2>&1; rc=$?
  cat /tmp/one.$$ >> $log.full; echo "$((SECONDS-b)) s, status $rc: $chapter $what $size $how $(grep -m1 'benchmark.py:' /tmp/one.$$)" >> $log
done
