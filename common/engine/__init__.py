"""One measurement, from files to a verdict. Each stage returns a value that the next stage reads.

runner.run_pairs     makes one `Job` per pair and size. `measure` runs in a process for each; then `confirm_alone` runs.
measure.measure      the stages of the first process, in order:
  session.load       candidates (candidates.Candidate): the versions, their libraries, the baseline again as A/A control
  check.check        compares every version with the oracle at the check sizes, on ordinary and on stress draws
                     (answer.fresh_answer makes an Answer, answer.Reference judges it, judgement does so for all)
  plan.plan          Plan: the numbers of blocks and rounds; each candidate's CallTiming: seconds per call, calls per
                     sample
  sampling           Samples: blocks of rounds, in each of which every candidate runs once on new values. Answers are
                     compared within the round; in the first block and two drawn ones also with the oracle
  untimed_checks     what untimed calls do that samples do not show
  conclude           the PairResult: rows, ratios with intervals, verdicts, notes; plausibility: impossible times
confirm_alone        the PairResult after every candidate has run alone, in its own process (run_alone). All get
                     the same seeds, each right before its sample, and learn after it whether its answer is kept. The
                     baseline's process runs last and judges the answers. A candidate that is wrong alone is
                     disqualified. A conclusion that the times of the runs alone contradict is unsure.

A pair with RANKS runs in a process per rank (rank_group, isolation.rank_launcher), and each runs the same stages.
Ranks keeps them in step: what one rank finds by itself (a time, a wrong answer) is shared before anything is decided by
it.

The stages share a session.Session: the job, the candidates, and the disqualified ones with reasons, which only its
methods write. inputs.InputSet is one draw of the inputs, with a private copy that shows whether they were changed.
"""
