"""A captioner with its own picture encoder and pieces of words: deploy/guide/bring-a-model.md.

It needs `tokenizer.json` beside it.
"""

import torch
from tokenizers import Tokenizer
from torch import nn

from workers.export import Captioner


class Mine(nn.Module):
    def __init__(self, pieces):
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 16, stride=16)
        self.embed = nn.Embedding(pieces, 32)
        self.attend = nn.MultiheadAttention(32, 4, batch_first=True)
        self.cell, self.out = nn.GRUCell(64, 32), nn.Linear(32, pieces)


class Look(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, pixels):  # (n, 3, 224, 224)
        seen = self.net.patches(pixels).flatten(2).transpose(1, 2)
        return seen, seen.mean(1)  # of each image; the state before START


class Step(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, words, seen, h):  # (n), and what Look and the last Step gave
        found, _ = self.net.attend(h[:, None], seen, seen, need_weights=False)
        h = self.net.cell(torch.cat([self.net.embed(words), found[:, 0]], 1), h)
        return self.net.out(h), h


def captioner():
    tokenizer = Tokenizer.from_file("tokenizer.json")
    net = Mine(tokenizer.get_vocab_size())  # net.load_state_dict(torch.load("mine.pt"))
    return Captioner(
        look=Look(net).eval(),
        step=Step(net).eval(),
        preprocessing={
            "size": {"height": 256, "width": 256},
            "resample": 3,
            "do_center_crop": True,
            "crop_size": {"height": 224, "width": 224},
            "image_mean": [0.485, 0.456, 0.406],
            "image_std": [0.229, 0.224, 0.225],
        },
        tokenizer=tokenizer,
        start="[CLS]",
        end="[SEP]",
    )
