"""Exercises: what the reader writes is graded on this machine, with a GPU or without.

exercise.py   an exercise as its folder has it: exercises/<chapter>/<name>/exercise.toml and the files beside it
learner_log.py what the reader did: work/progress.jsonl, which is only ever added to
submission.py the reader's file: made, or taken from a notebook's cell; graded, and that noted
grade.py      a file through the gates of its kind, in order; the first that fails ends it
gate.py       what a gate says, and what they come to together
kernel_gates.py `write` and `repair`: right, and on a GPU fast
traffic_gates.py the same without a GPU: traffic and machine code
multi_process.py code that runs in several processes: a deadlock is found, and what each process sends is counted
answer_gates.py `predict`, `count`, `diagnose`, `referee`: answers that are numbers, words or functions
memcheck.py a kernel at all check sizes, where no address outside of a tensor is touched
kernel_lint.py what of Python does not work on blocks, in a kernel's text
failure_text.py a wrong answer as the harness tells of it, in a reader's words
diagnosis.py a kernel's answer, followed through its loads and stores
first_mismatch.py the first wrong element, and what it looks like
access_trace.py what a kernel's programs do outside arrays, and with lanes that are masked
errors.py     an error in a kernel as one line
forecast_score.py predictions: how good they were, and how sure
"""
