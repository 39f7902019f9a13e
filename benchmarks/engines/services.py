#!/usr/bin/env python3
"""Services of one graph beside the jobs of an engine's GPU: CLIP, Whisper's encoder, DLRM, a GRU.

The rows and the options are those of ../matrix/unprepared.py: p99 over the service's own graph alone on the same
arrivals, beside lora, gpt2c and vit of jobs.py, under a bound and under what users do today.

  services.py [--services clip_b1,dlrm_b256] [--steps lora,vit] [--load 0.5] [--queries 2400] [--out FILE] ...

With --forms the steps are compiled training steps, and a row has each form of its step: products of cuBLAS, templates
in segments, templates with twins (form_rows.py). Exit code 1 then says that a row failed or a loss is not finite.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Callable
from typing import Any

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / 'matrix'))

import unprepared  # before PyTorch: it sets the environment, and ends without a GPU

import torch  # isort: skip
import compiled_steps
import forms
import jobs
import networks
from form_rows import BEFORE_S, FormsRow, add_options
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

# Of --forms, where the command line has no other: no baselines, because bare is in each round.
FORMS_DEFAULTS = {'services': 'bert_b1,dlrm_b256,decode_b16', 'steps': ','.join(compiled_steps.STEPS),
                  'promises': '1.02,1.05', 'baselines': '', 'rounds': 2, 'queries': 2000}


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = unprepared.options()
    add_options(parser)
    parser.set_defaults(services=','.join(SERVICES), steps=','.join(jobs.CAPTURED))
    given = parser.parse_args(arguments)
    if given.forms:
        parser.set_defaults(**FORMS_DEFAULTS)
        given = parser.parse_args(arguments)
        try:
            forms.chosen(given.forms)
        except ValueError as error:
            parser.error(str(error))
        given.seconds = given.limit_s - BEFORE_S
    return given


def main() -> int:
    given = parsed()
    networks.SERVICES.update(SERVICES)
    networks.STEPS.update({name: make for name, make in jobs.makers(False).items() if name in jobs.CAPTURED})
    if not given.forms:
        return unprepared.main(given)
    kind = FormsRow.of(given)
    code = unprepared.main(given, kind)
    kind.finish(given)
    return code


if __name__ == '__main__':
    sys.exit(main())
