import pytest


@pytest.fixture
def opened(needs_sandbox):
    """Opens ONNX bundles in the sandbox, and ends their processes."""
    from workers.inference.onnx import captioner

    found = []

    def read(path, **options):
        found.append(captioner.read_onnx_captioner(path, **options))
        return found[-1]

    yield read
    for each in found:
        each.close()
