#!/usr/bin/env python3
"""Services of one graph beside the jobs of an engine's GPU: CLIP, Whisper's encoder, DLRM, a GRU.

The rows and the options are those of ../matrix/unprepared.py: p99 over the service's own graph alone on the same
arrivals, beside lora, gpt2c and vit of jobs.py, under a bound and under what users do today.

  services.py [--services clip_b1,dlrm_b256] [--steps lora,vit] [--load 0.5] [--queries 2400] [--out FILE] ...
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from typing import Any

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / 'matrix'))

import unprepared  # before PyTorch: it sets the environment, and ends without a GPU

import torch  # isort: skip
import jobs
import networks
from networks import Block
from steps import Service
from torch import nn

TABLES, ROWS, WIDE = 26, 100_000, 64  # of DLRM's embeddings


class Encoder(nn.Module):
    """A stem, positions and blocks as GPT-2 has them, without a mask."""

    def __init__(self, stem: nn.Module, length: int) -> None:
        super().__init__()
        self.stem, self.positions = stem, nn.Parameter(torch.randn(length, 768) * 0.02)
        self.blocks = nn.Sequential(*(Block(768, 12, causal=False, norm_first=True) for _ in range(12)))
        self.norm = nn.LayerNorm(768)

    def forward(self, x: Any) -> Any:
        return self.norm(self.blocks(self.stem(x) + self.positions))


class Transposed(nn.Module):
    """[batch, channels, length] as [batch, length, channels]."""

    def forward(self, x: Any) -> Any:
        return x.transpose(1, 2)


def _half(net: nn.Module) -> nn.Module:
    return net.half().eval().requires_grad_(False)


def _clip(batch: int) -> Service:
    """CLIP's ViT-B/16 on images that are cut into 196 patches and a token of the class."""
    with torch.device('cuda'):
        net = _half(Encoder(nn.Linear(768, 768), 197))
    return net, torch.randn(batch, 197, 768, device='cuda').half()


def whisper_encoder() -> Service:
    """Whisper-small's encoder on 30 s of sound: 80 bands at 3,000 times."""
    with torch.device('cuda'):
        stem = nn.Sequential(nn.Conv1d(80, 768, 3, padding=1), nn.GELU(), nn.Conv1d(768, 768, 3, stride=2, padding=1),
                             nn.GELU(), Transposed())
        net = _half(Encoder(stem, 1500))
    return net, torch.randn(1, 80, 3000, device='cuda').half()


class Dlrm(nn.Module):
    """A recommendation model: a look-up in each of 26 tables, products of all pairs, two small MLPs."""

    def __init__(self, batch: int) -> None:
        super().__init__()
        self.tables = nn.Embedding(TABLES * ROWS, WIDE)
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                                    nn.Linear(256, WIDE), nn.ReLU())
        pairs = torch.tril_indices(TABLES + 1, TABLES + 1, offset=-1)
        self.top = nn.Sequential(nn.Linear(WIDE + pairs.shape[1], 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                                 nn.Linear(256, 1))
        self.register_buffer('pairs', pairs[0] * (TABLES + 1) + pairs[1])
        self.register_buffer('places', torch.randint(0, ROWS, (batch, TABLES)) + torch.arange(TABLES) * ROWS)

    def forward(self, dense: Any) -> Any:
        low = self.bottom(dense)
        features = torch.cat((low[:, None], self.tables(self.places)), dim=1)
        products = torch.bmm(features, features.transpose(1, 2)).flatten(1).index_select(1, self.pairs)
        return self.top(torch.cat((low, products), dim=1))


def dlrm_b256() -> Service:
    with torch.device('cuda'):
        net = _half(Dlrm(256))
    return net, torch.randn(256, 13, device='cuda').half()


class Recurrent(nn.Module):
    """cuDNN's GRU: 2 layers of 512 over 64 steps."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(512, 512, num_layers=2, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.gru(x)[0]


def gru_b1() -> Service:
    net = _half(Recurrent().cuda())
    net.gru.flatten_parameters()
    return net, torch.randn(1, 64, 512, device='cuda').half()


SERVICES: dict[str, Callable[[], Service]] = {
    'clip_b1': lambda: _clip(1), 'clip_b8': lambda: _clip(8), 'whisper_encoder': whisper_encoder,
    'dlrm_b256': dlrm_b256, 'gru_b1': gru_b1}


def main() -> int:
    networks.SERVICES.update(SERVICES)
    networks.STEPS.update({name: make for name, make in jobs.makers(False).items() if name in jobs.CAPTURED})
    for option, names in (('--services', SERVICES), ('--steps', jobs.CAPTURED)):
        if option not in sys.argv:
            sys.argv += [option, ','.join(names)]
    return unprepared.main()


if __name__ == '__main__':
    sys.exit(main())
