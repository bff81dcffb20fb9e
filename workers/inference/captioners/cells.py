"""The recurrent cells. A state is (n, width): h, then for an LSTM its second state."""

from collections.abc import Mapping

import torch
from torch import Tensor

from workers.inference.devices import Product

Tensors = Mapping[str, Tensor]


class _GruBase:
    """Input weights and biases that both GRUs share."""

    def __init__(self, tensors: Tensors, inputs: int) -> None:
        gates, candidate = tensors["gates.weight"], tensors["candidate.weight"]
        self.size = candidate.shape[1]
        self.width = self.size
        self.input_weight = torch.cat([gates[:inputs], candidate[:inputs]], dim=1)
        self.input_bias = torch.cat([tensors["gates.bias"], tensors["candidate.bias"]])

    def start(self, h: Tensor) -> Tensor:
        return h


class GruCell(_GruBase):
    """The classic GRU: the reset gate is applied before the matrix product; one bias per gate."""

    def __init__(self, tensors: Tensors, inputs: int) -> None:
        super().__init__(tensors, inputs)
        self._gates = Product(tensors["gates.weight"][inputs:])
        self._candidate = Product(tensors["candidate.weight"][inputs:])

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """`x` is the input times `input_weight` plus `input_bias`: (n, 3s)."""
        s = self.size
        reset, update = torch.sigmoid(x[:, : 2 * s] + self._gates(state)).chunk(2, dim=1)
        candidate = torch.tanh(x[:, 2 * s :] + self._candidate(reset * state))
        return torch.lerp(candidate, state, update)  # u*h + (1-u)*c


class TorchGruCell(_GruBase):
    """The GRU of torch.nn.GRU: the reset gate is applied after the matrix product, whose bias it
    scales too.
    """

    def __init__(self, tensors: Tensors, inputs: int) -> None:
        super().__init__(tensors, inputs)
        gates, candidate = tensors["gates.weight"], tensors["candidate.weight"]
        bias = torch.cat([torch.zeros_like(tensors["gates.bias"]), tensors["candidate.state_bias"]])
        self._state = Product(torch.cat([gates[inputs:], candidate[inputs:]], dim=1), bias)

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """`x` is the input times `input_weight` plus `input_bias`: (n, 3s)."""
        s = self.size
        y = self._state(state)
        reset, update = torch.sigmoid(x[:, : 2 * s] + y[:, : 2 * s]).chunk(2, dim=1)
        candidate = torch.tanh(x[:, 2 * s :] + reset * y[:, 2 * s :])
        return torch.lerp(candidate, state, update)  # u*h + (1-u)*c


class LstmCell:
    """An LSTM: gates in the order input, forget, candidate, output; second state starts at zero."""

    def __init__(self, tensors: Tensors, inputs: int) -> None:
        gates = tensors["gates.weight"]
        self.size = gates.shape[1] // 4
        self.width = 2 * self.size
        self.input_weight = gates[:inputs]
        self.input_bias = tensors["gates.bias"]
        self._gates = Product(gates[inputs:])

    def start(self, h: Tensor) -> Tensor:
        return torch.cat([h, torch.zeros_like(h)], dim=1)

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """`x` is the input times `input_weight` plus `input_bias`: (n, 4s)."""
        h, memory = state[:, : self.size], state[:, self.size :]
        i, f, g, o = (x + self._gates(h)).chunk(4, dim=1)
        memory = torch.sigmoid(f) * memory + torch.sigmoid(i) * torch.tanh(g)
        return torch.cat([torch.sigmoid(o) * torch.tanh(memory), memory], dim=1)


Cell = GruCell | TorchGruCell | LstmCell
CELLS: Mapping[str, type[Cell]] = {"gru": GruCell, "torch_gru": TorchGruCell, "lstm": LstmCell}
