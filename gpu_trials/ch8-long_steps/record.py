"""On a GPU, from the repository's root: python /path/to/record.py: records the profile and writes the exercise.

It makes exercises/ch8/long_steps. Then: python -m tools solutions ch8/long_steps; cd tests; python -m mutants
ch8/long_steps; a function for it in tests/learn/test_given_profiles.py, and nb.learn.show in the notebook.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT, HERE = Path.cwd(), Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))
FOLDER = ROOT / "exercises/ch8/long_steps"


def main() -> None:
    from common.profiling import profile_file
    from common.profiling.lanes import Part, is_wait, lanes
    from common.profiling.profile_names import totals
    from common.show.formats import seconds

    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("start.py", "solution.py"):
        shutil.copy(HERE / name, FOLDER)
    template = (HERE / "exercise.toml.in").read_text(encoding="utf-8")
    blank = {"waits": "1", "gain": "1.0"}
    write(template, blank)
    subprocess.run([sys.executable, "-m", "tools", "exercise_profiles", "ch8/long_steps"], check=True)
    profile = profile_file.load(FOLDER / "profile.json.gz")
    _, gpu = lanes(profile)
    parts, whole = gpu.totals, profile.about.profiled_s
    sync = parts[Part.SYNC]
    runtime = profile_file.spans(profile.traceEvents, "cuda_runtime", "cuda_driver")
    waits = sum(map(is_wait, runtime)) - 1  # the last ends the recording
    gain = whole / (whole - sync)
    optimizer = next(time for name, (_, time) in totals(profile).items() if name.startswith("Optimizer.step"))
    others = {"host": Part.HOST, "kernels": Part.KERNELS, "copies": Part.COPIES}
    figures = {"whole": seconds(whole), "sync": seconds(sync), "optimizer": seconds(optimizer), "waits": str(waits)}
    write(template, figures | {"gain": f"{gain:.3g}"} | {name: seconds(parts.get(of, 0.0)) for name, of in others.items()})
    path = FOLDER / "solution.py"
    text = path.read_text(encoding="utf-8").replace("waits = None  # filled in by record.py", f"waits = {waits}  # calls")
    ends = f"gain = ({gain * 0.9:.3g}, {gain * 1.1:.3g})  # times as fast, without the gaps"
    path.write_text(text.replace("gain = None  # filled in by record.py", ends), encoding="utf-8")
    print(f"{FOLDER}: {figures}, gain {gain:.3g}. Look whether waits is what Perfetto shows, and whether gain is above 1.2")


def write(template: str, figures: dict[str, str]) -> None:
    for name, value in figures.items():
        template = template.replace(f"@{name}@", value)
    (FOLDER / "exercise.toml").write_text(template, encoding="utf-8")


if __name__ == "__main__":
    main()
