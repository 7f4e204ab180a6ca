"""One measurement, from two files to a verdict. Each stage returns a value that the next one reads.

runner.run_pairs     one `Job` a pair and size; for each a process in which `measure` works, then those of `settle`
measure.measure      the stages of the first process, in order:
  session.load       candidates (candidates.Candidate): the versions, their libraries, the baseline again as A/A control
  check.check        every version at the check sizes, on ordinary and on hard values, beside the oracle
                     (answers.fresh_answer makes an Answer, answers.Truth says whether it is right, judge asks for all)
  pilot.plan         Plan: how many blocks and rounds; of each candidate a Pace: a call's seconds, calls a sample
  rounds             Samples: blocks of rounds, in each of which every candidate runs once on values that none has seen;
                     answers are compared within the round; in the first block and two that are drawn with the oracle
  inspection.look    what untimed calls do that samples do not show
  conclude           the PairResult: rows, ratios with intervals, verdicts, notes; belief: of which times there are none
settle.settled       the PairResult once every candidate has run alone, in a process of its own (alone.run_alone): the
                     same seeds, each told right before its sample; which sample's answer is kept is told after it. The
                     baseline's process, the last, judges the answers. Who is wrong alone is out; a conclusion that the
                     times of the runs alone contradict is unsure.

What stages share is a session.Session: the job, the candidates, and who was disqualified for what, which only its
methods write. inputs.InputSet is one draw of the inputs, with a private copy that tells whether they were changed.
"""
