"""The device for models, from the setting `PRESCORE_DEVICE`."""

import torch

from service.contract.errors import InvalidSetting


def resolve(setting: str) -> torch.device:
    """The device of a setting; `auto` is the first CUDA device if there is one, else the CPU."""
    if setting == "auto":
        return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    if setting.startswith("cuda"):
        count = torch.cuda.device_count()
        if int(setting.removeprefix("cuda:")) >= count:
            raise InvalidSetting(
                f"PRESCORE_DEVICE={setting}: this machine has {count} CUDA devices; "
                "use auto or cpu, or run a CUDA build of torch on a machine with a GPU"
            )
    return torch.device(setting)
