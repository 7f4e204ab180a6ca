"""Wrong versions of lessons, and wrong answers to exercises: what neither `--check` nor a gate may let pass.

    cd tests; python -m mutants                 judges what is not judged yet, and keeps it in results.json
    python -m mutants ch3 softmax               of one chapter, or of one lesson
    python -m mutants ch3/softmax               of one exercise: its wrong answers, and random mistakes in its solution
    python -m mutants ch3 softmax --anew        all of them, whatever is known: after a change of the checks

| module | what is wrong | who judges |
| --- | --- | --- |
| `lessons` | a change of an optimized file that a learner might make (`chN`) | the harness |
| `answers` | an answer that a reader might give (`[wrong]` in exercise.toml) | the exercise's gates |
| `mutations` | a random mistake in an exercise's solution | the exercise's gates |
"""
