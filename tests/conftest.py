"""What all tests share: those marked `gpu` are skipped, with the reason, where there is no GPU to run them on."""

import pytest


def pytest_collection_modifyitems(items):
    needs_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not needs_gpu:
        return
    import torch  # seconds: only where a test asks for it

    if torch.cuda.is_available():
        return
    built_for = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built without CUDA"
    skip = pytest.mark.skip(reason=f"needs an NVIDIA GPU; torch {torch.__version__}, {built_for}, sees none here")
    for item in needs_gpu:
        item.add_marker(skip)


@pytest.fixture(scope="module")
def machine():
    """This machine, described once; what it can do is measured where it is tested."""
    from common import runner  # imports torch

    surveyed = runner.survey_apart("cpu", with_limits=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "survey_apart", lambda device, with_limits=True: surveyed)
        yield surveyed[0]
