"""Convolutional networks of torchvision with random weights: services of one fp16 image, and training steps.

The training steps have average pooling instead of maximum pooling, whose backward pass is not deterministic, and no
dropout, which would draw random numbers inside a graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from steps import Service, Step, autocast_step
from torch import nn
from torch.nn import functional

IMAGES_FOR_STATISTICS = 16


def _model(name: str, **options: Any) -> Any:
    """The network on the GPU, made there: the CPU takes seconds for the weights of a VGG."""
    import torchvision

    with torch.device('cuda'):
        return getattr(torchvision.models, name)(weights=None, **options)


def _image(batch: int, size: int) -> Any:
    return torch.randn(batch, 3, size, size, device='cuda').contiguous(memory_format=torch.channels_last)


def _service(name: str, size: int = 224, **options: Any) -> Service:
    net = _model(name, **options)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # the plain mean over batches, so that activations fit in fp16
    net.train()
    with torch.no_grad():
        net(_image(IMAGES_FOR_STATISTICS, size))
    net.eval().requires_grad_(False).to(dtype=torch.half, memory_format=torch.channels_last)
    return net, _image(1, size).half()


def resnet50_b1() -> Service:
    return _service('resnet50')


def resnext50_b1() -> Service:
    return _service('resnext50_32x4d')


def vgg16_b1() -> Service:
    return _service('vgg16')


def vgg19_b1() -> Service:
    return _service('vgg19')


def inception_b1() -> Service:
    return _service('inception_v3', size=299, aux_logits=False, init_weights=False)


def densenet121_b1() -> Service:
    return _service('densenet121')


SERVICES: dict[str, Callable[[], Service]] = {
    'resnet50_b1': resnet50_b1, 'resnext50_b1': resnext50_b1, 'vgg16_b1': vgg16_b1, 'vgg19_b1': vgg19_b1,
    'inception_b1': inception_b1, 'densenet121_b1': densenet121_b1}


def _average_instead(module: nn.Module) -> None:
    """Replaces each maximum pooling inside by an average, and each dropout by nothing."""
    for name, child in module.named_children():
        if isinstance(child, nn.MaxPool2d):
            setattr(module, name, nn.AvgPool2d(child.kernel_size, child.stride, child.padding))
        elif isinstance(child, nn.Dropout):
            setattr(module, name, nn.Identity())
        else:
            _average_instead(child)


def _step(net: Any, batch: int, size: int = 224, rate: float = 1e-4) -> Step:
    _average_instead(net)
    net = net.cuda().to(memory_format=torch.channels_last)
    x, y = _image(batch, size), torch.randint(0, 1000, (batch,), device='cuda')
    return autocast_step(net, lambda: functional.cross_entropy(net(x), y), rate)


def resnet50_b32() -> Step:
    import torchvision

    return _step(torchvision.models.resnet50(weights=None), 32)


def vgg16_b16() -> Step:
    net = _model('vgg16', dropout=0.0)
    net.avgpool = nn.Identity()  # the map is 7 x 7 already; the adaptive pooling's backward pass is not deterministic
    return _step(net, 16)


def inception_b16() -> Step:
    return _step(_Inception(_model('inception_v3', aux_logits=False, init_weights=False, dropout=0.0)), 16, size=299)


def densenet121_b16() -> Step:
    return _step(_model('densenet121'), 16)


class _Inception(nn.Module):
    """Inception-v3 whose reductions, which call max_pool2d as a function, pool by averages."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net
        for block in (net.Mixed_6a, net.Mixed_7a):
            block._forward = _averaged(block._forward)

    def forward(self, x: Any) -> Any:
        return self.net(x)


def _averaged(forward: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The branches of a reduction, of which the last is a pooling of the input."""
    def call(x: Any) -> Any:
        branches = forward(x)
        return [*branches[:-1], functional.avg_pool2d(x, kernel_size=3, stride=2)]

    return call


STEPS: dict[str, Callable[[], Step]] = {
    'resnet50_b32': resnet50_b32, 'vgg16_b16': vgg16_b16, 'inception_b16': inception_b16,
    'densenet121_b16': densenet121_b16}
