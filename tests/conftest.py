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
