import pytest
import torch
from transformers.pytorch_utils import Conv1D

from helpers.pretended_device import pretended_device
from service.contract.errors import InvalidSetting
from workers.inference import devices
from workers.inference.devices import FrozenLinear, Product


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


EXACT = {  # numbers of a weight, and the form in which a GPU that is short of memory keeps them
    torch.bfloat16: [1 + 2.0**-7, 2.0**-80],
    torch.float16: [1 + 2.0**-10, 2.0**-20],
    torch.float32: [1 + 2.0**-20, 2.0**-80],
}


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("dtype", EXACT)
def test_a_frozen_layer_is_the_layer_and_keeps_its_weight_in_16_bits(dtype, is_turned, monkeypatch):
    monkeypatch.setattr(devices, "pack_weight", lambda _: None)  # as on a GPU
    generator = torch.Generator().manual_seed(0)
    layer = torch.nn.Linear(5, 3)
    if is_turned:
        layer = Conv1D(3, 5)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(EXACT[dtype] * 8)[:15].reshape(layer.weight.shape))
        x = torch.randn(2, 4, 5, generator=generator)
        for halves in (True, False):
            frozen = FrozenLinear(layer, torch.device("cpu"), halves=halves)
            assert frozen._stored.dtype == (dtype if halves else torch.float32)
            assert torch.equal(frozen.unpack_weight(), layer.weight)
            torch.testing.assert_close(frozen(x), layer(x))
        a, b = torch.randn(2, 5, generator=generator), torch.randn(3, 2, generator=generator)
        frozen.change = a, b
        torch.testing.assert_close(frozen(x), layer(x) + x @ a.t() @ b.t())


def test_gradients_flow_through_a_product_of_trained_weights():
    weight = torch.ones(2, 3, requires_grad=True)
    Product(weight)(torch.ones(1, 2)).sum().backward()
    assert torch.equal(weight.grad, torch.ones(2, 3))


def test_auto_takes_a_gpu_where_there_is_one_and_others_are_refused_with_their_number(
    monkeypatch,
):
    assert devices.resolve_device("cpu") == torch.device("cpu")
    expected = "cuda:0" if torch.cuda.is_available() else "cpu"
    assert devices.resolve_device("auto") == torch.device(expected)
    with pretended_device():
        assert devices.resolve_devices("cuda:0") == [torch.device("cuda:0")]
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        found = devices.resolve_devices("cuda:0,cuda:1")
        assert found == [torch.device("cuda:0"), torch.device("cuda:1")]
        with pytest.raises(InvalidSetting, match="cuda:2: this machine has 2 CUDA devices"):
            devices.resolve_devices("cuda:1,cuda:2")
    monkeypatch.undo()
    with pytest.raises(InvalidSetting, match=f"has {torch.cuda.device_count()} CUDA devices"):
        devices.resolve_device("cuda:63")
