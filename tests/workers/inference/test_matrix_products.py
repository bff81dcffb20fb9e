import pytest
import torch

from service.contract.errors import InvalidSetting
from workers.inference import devices
from workers.inference.devices import Product


@pytest.mark.long
@pytest.mark.parametrize("rows", [0, 1, 7, 640])
@pytest.mark.parametrize("bias", [False, True])
def test_a_packed_product_is_the_product(rows, bias):
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(33, 71, generator=generator)
    offset = torch.randn(71, generator=generator) if bias else None
    x = torch.randn(rows, 33, generator=generator)
    expected = x.double() @ weight.double() + (0 if offset is None else offset.double())
    torch.testing.assert_close(Product(weight, offset)(x).double(), expected, atol=1e-4, rtol=0)


def test_gradients_flow_through_a_product_of_trained_weights():
    weight = torch.ones(2, 3, requires_grad=True)
    Product(weight)(torch.ones(1, 2)).sum().backward()
    assert torch.equal(weight.grad, torch.ones(2, 3))


def test_auto_takes_a_gpu_where_there_is_one_and_others_are_refused_with_their_number():
    assert devices.resolve_device("cpu") == torch.device("cpu")
    expected = "cuda:0" if torch.cuda.is_available() else "cpu"
    assert devices.resolve_device("auto") == torch.device(expected)
    with pytest.raises(InvalidSetting, match=f"has {torch.cuda.device_count()} CUDA devices"):
        devices.resolve_device("cuda:63")
