# SPDX-License-Identifier: Apache-2.0
"""Small networks, one per structure that the compiler has to get right. Each entry of NETWORKS names the module, the shape of one sample
and what its targets are: the number of classes, or the shape of one regression target. The samples of text are a dict: what each input of the
module holds."""
import torch
from torch import nn
import torch.nn.functional as F

from masks import Masks
from modern import Bert, ConvNext, Gpt, Vit
from recurrent import Gru, Lstm
from samples import Ids, Lengths
from slabs import Slabs
from volumes import Signal, Volume, Wave


class Mlp(nn.Sequential):
    """Three linear layers."""
    def __init__(self):
        super().__init__(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 5))


def conv_bn_1x1(inputs, outputs, stride=1):
    return nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)


def conv_bn(inputs, outputs, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class Block(nn.Module):
    """Residual block, with a projection when the shape changes."""
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = Block(8, 8, 1)
        self.layer2 = Block(8, 16, 2)
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Bottleneck(nn.Module):
    """Residual blocks of 1x1, 3x3, 1x1 convolutions: the 3x3 one strides, the projection does so, too."""
    def __init__(self, repeats=1):
        super().__init__()
        def block(inputs, width, outputs, stride):
            return nn.ModuleDict({
                "path": nn.Sequential(*conv_bn_1x1(inputs, width), nn.ReLU(), nn.Conv2d(width, width, 3, stride, 1, bias=False),
                                      nn.BatchNorm2d(width), nn.ReLU(), *conv_bn_1x1(width, outputs)),
                "skip": nn.Sequential(*conv_bn_1x1(inputs, outputs, stride)) if stride > 1 or inputs != outputs else nn.Identity()})
        self.stem = conv_bn(3, 8, 2)
        self.blocks = nn.ModuleList([block(8, 4, 16, 1), *(block(16, 4, 16, 1) for _ in range(repeats)), block(16, 8, 24, 2)])
        self.fc = nn.Linear(24, 10)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = F.relu(block["path"](x) + block["skip"](x))
        return self.fc(x.mean((2, 3)))


class LeakyResNet(nn.Module):
    """Residual blocks with leaky ReLUs: BatchNorm and activation can be undone from their output."""
    def __init__(self, width=16, blocks=3):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.LeakyReLU(0.1))
        self.inner = nn.ModuleList(nn.Sequential(
            nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.LeakyReLU(0.1),
            nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)) for _ in range(blocks))
        self.fc = nn.Linear(width, 10)

    def forward(self, x):
        x = self.stem(x)
        for inner in self.inner:
            x = F.leaky_relu(x + inner(x), 0.1)
        return self.fc(x.mean((2, 3)))


class Reversible(nn.Module):
    """A RevNet (Gomez et al. 2017): two halves of the channels, each gains what is computed from the other, so that every block can be undone
    from its outputs. Blocks put the halves together and the next takes them apart."""
    def __init__(self, width=8, blocks=6):
        super().__init__()
        def part():
            return nn.Sequential(nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 3, 1, 1, bias=False),
                                 nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 3, 1, 1, bias=False))
        self.stem = nn.Conv2d(3, 2 * width, 3, 1, 1, bias=False)
        self.first, self.second = nn.ModuleList(part() for _ in range(blocks)), nn.ModuleList(part() for _ in range(blocks))
        self.norm = nn.BatchNorm2d(2 * width)
        self.fc = nn.Linear(2 * width, 10)

    def forward(self, x):
        x = self.stem(x)
        for first, second in zip(self.first, self.second):
            a, b = torch.chunk(x, 2, 1)
            a = a + first(b)
            x = torch.cat([a, b + second(a)], 1)
        return self.fc(F.relu(self.norm(x)).mean((2, 3)))


class Vgg(nn.Module):
    """Convolutions with bias, max pools, a hidden linear layer after a flatten of more than 1x1."""
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(nn.Linear(16 * 4 * 4, 24), nn.ReLU(), nn.Linear(24, 10))

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


class DenseNet(nn.Module):
    """Concatenation of everything so far, BatchNorm before convolution, average pool between blocks."""
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(8 + 6 * i) for i in range(3))
        self.convs = nn.ModuleList(nn.Conv2d(8 + 6 * i, 6, 3, 1, 1, bias=False) for i in range(3))
        self.transition = nn.Sequential(nn.BatchNorm2d(26), nn.ReLU(), nn.Conv2d(26, 12, 1, bias=False), nn.AvgPool2d(2))
        self.fc = nn.Linear(12, 10)

    def forward(self, x):
        parts = [self.stem(x)]
        for norm, conv in zip(self.norms, self.convs):
            parts.append(conv(F.relu(norm(torch.cat(parts, 1)))))
        x = self.transition(torch.cat(parts, 1))
        return self.fc(x.mean((2, 3)))


class UNet(nn.Module):
    """Encoder and decoder with a long skip, transposed convolution with bias, nearest and bilinear upsampling; a map per class."""
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.bottom = conv_bn(2, 6), conv_bn(6, 8, 2), conv_bn(8, 12, 2)
        self.up1 = nn.ConvTranspose2d(12, 8, 2, 2)
        self.merge1 = conv_bn(16, 8)
        self.merge2 = conv_bn(14, 6)
        self.narrow = nn.Conv2d(8, 6, 1)
        self.head = nn.Conv2d(12, 3, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(a)
        c = self.up1(self.bottom(b))
        d = self.merge1(torch.cat([b, c], 1))
        nearest = F.interpolate(d, scale_factor=2, mode="nearest")
        smooth = F.interpolate(self.narrow(d), scale_factor=2, mode="bilinear", align_corners=False)
        return self.head(torch.cat([self.merge2(torch.cat([a, nearest], 1)), smooth], 1))


class LrnSymbol(torch.autograd.Function):
    """Local response normalization that is exported as one LRN node, not as PyTorch's pads and pools."""
    @staticmethod
    def symbolic(g, x, size, alpha):
        return g.op("LRN", x, size_i=size, alpha_f=alpha).setType(x.type())

    @staticmethod
    def forward(ctx, x, size, alpha):
        return F.local_response_norm(x, size, alpha)


class Lrn(nn.Module):
    def forward(self, x):
        return LrnSymbol.apply(x, 5, 1e-2) if torch.onnx.is_in_onnx_export() else F.local_response_norm(x, 5, 1e-2)


class LrnNet(nn.Module):
    """AlexNet's local response normalization and overlapping pools with an odd border."""
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 12, 5, 2, 2), nn.Conv2d(12, 16, 3, 1, 1, groups=2)
        self.norm = Lrn()
        self.pool = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.fc = nn.Linear(16 * 2 * 2, 10)

    def forward(self, x):
        x = self.pool(self.norm(F.relu(self.conv1(x))))
        x = self.pool(self.norm(F.relu(self.conv2(x))))
        return self.fc(torch.flatten(x, 1))


class Mobile(nn.Module):
    """Inverted residuals: 1x1, depthwise 3x3, 1x1, with ReLU6; a dilated and a grouped convolution."""
    def __init__(self):
        super().__init__()
        def step(inputs, outputs, kernel, stride=1, groups=1, dilation=1):
            pad = (kernel - 1) // 2 * dilation
            return [nn.Conv2d(inputs, outputs, kernel, stride, pad, dilation, groups, bias=False), nn.BatchNorm2d(outputs)]
        self.stem = nn.Sequential(*step(3, 8, 3, 2), nn.ReLU6())
        self.block = nn.Sequential(*step(8, 24, 1), nn.ReLU6(), *step(24, 24, 3, groups=24), nn.ReLU6(), *step(24, 8, 1))
        self.tail = nn.Sequential(*step(8, 16, 3, groups=4), nn.LeakyReLU(0.1), *step(16, 16, 3, dilation=2), nn.ReLU6())
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = self.stem(x)
        x = self.tail(x + self.block(x))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Gates(nn.Module):
    """Arithmetic with broadcasting: squeeze and excitation, split and product, softmax attention, a residual scale; regression."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.squeeze, self.excite = nn.Linear(8, 4), nn.Linear(4, 8)
        self.scale = nn.Parameter(torch.full((8, 1, 1), 0.5))
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        a, b = torch.split(self.conv(x), 8, 1)
        x = a * torch.sigmoid(b)
        gate = torch.sigmoid(self.excite(F.relu(self.squeeze(x.mean((2, 3))))))
        x = x + self.scale * x * gate[:, :, None, None]
        t = x.flatten(2).transpose(1, 2)
        weights = torch.softmax(self.query(t) @ self.key(t).transpose(1, 2) / 8 ** 0.5, -1)
        return self.out((t + weights @ self.value(t)).mean(1))


def deep_residual():
    return nn.Sequential(conv_bn(3, 8), *(Block(8, 8, 1) for _ in range(6)), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))


def deep_vgg():
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.ReLU()]
    for i in range(9):
        layers += [nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()] + ([nn.MaxPool2d(2)] if i == 6 else [])
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * 8 * 8, 10))


class DeepDense(nn.Module):
    """One dense block of ten layers."""
    def __init__(self):
        super().__init__()
        self.stem = conv_bn(3, 8)
        self.layers = nn.ModuleList(nn.Sequential(nn.BatchNorm2d(8 + 4 * i), nn.ReLU(), nn.Conv2d(8 + 4 * i, 4, 3, 1, 1, bias=False)) for i in range(10))
        self.fc = nn.Linear(48, 10)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return self.fc(x.mean((2, 3)))


class DeepMobile(nn.Module):
    """Six inverted residuals."""
    def __init__(self):
        super().__init__()
        self.stem = conv_bn(3, 8)
        self.blocks = nn.ModuleList(nn.Sequential(*conv_bn_1x1(8, 24), nn.ReLU6(), nn.Conv2d(24, 24, 3, 1, 1, groups=24, bias=False),
                                                  nn.BatchNorm2d(24), nn.ReLU6(), *conv_bn_1x1(24, 8)) for _ in range(6))
        self.fc = nn.Linear(8, 10)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.fc(x.mean((2, 3)))


class DeepUNet(nn.Module):
    """Three levels of `convolutions` layers each, skips by concatenation, bilinear upsampling."""
    def __init__(self, inputs=2, width=6, convolutions=3, classes=3):
        super().__init__()
        def level(inputs, outputs):
            return nn.Sequential(conv_bn(inputs, outputs), *(conv_bn(outputs, outputs) for _ in range(convolutions - 1)))
        self.down1, self.down2, self.bottom = level(inputs, width), level(width, width), level(width, width)
        self.up2, self.up1 = level(2 * width, width), level(2 * width, width)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        def larger(y):
            return F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.up2(torch.cat([b, larger(self.bottom(F.max_pool2d(b, 2)))], 1))
        return self.head(self.up1(torch.cat([a, larger(c)], 1)))


# name: (module, shape of a sample, classes or shape of a target, batch)
NETWORKS = {
    "mlp": (Mlp, (16,), 5, 8),
    "resnet": (ResNet, (3, 16, 16), 10, 8),
    "vgg": (Vgg, (3, 16, 16), 10, 8),
    "densenet": (DenseNet, (3, 12, 12), 10, 8),
    "unet": (UNet, (2, 16, 16), 3, 4),
    "lrn": (LrnNet, (3, 21, 21), 10, 8),
    "mobile": (Mobile, (3, 16, 16), 10, 8),
    "gates": (Gates, (3, 6, 6), (3,), 8),
    "bottleneck": (Bottleneck, (3, 16, 16), 10, 8),
    "leaky": (LeakyResNet, (3, 12, 12), 10, 8),
    "signal": (Signal, (3, 37), 3, 8),
    "wave": (Wave, (2, 44), 4, 8),
    "volume": (Volume, (2, 4, 8, 8), 3, 2),
    "reversible": (Reversible, (3, 12, 12), 10, 8),
    "convnext": (ConvNext, (3, 12, 12), 10, 8),
    "vit": (Vit, (3, 8, 8), 10, 8),
    "gpt": (Gpt, {"input": Ids(23, 12)}, 23, 8),
    "bert": (Bert, {"input_ids": Ids(29, 12), "attention_mask": Lengths(12)}, 3, 8),
    "masks": (Masks, {"input_ids": Ids(29, 10), "attention_mask": Lengths(10)}, 3, 8),
    "lstm": (Lstm, {"input": Ids(19, 7)}, 3, 8),
    "gru": (Gru, {"input": Ids(19, 7)}, 3, 8),
    "slabs": (Slabs, (8, 16), 10, 8),
}

# Deeper ones, so that much less than keep's memory is enough, without references: name: (module, shape of a sample).
DEEP = {
    "residual": (deep_residual, (3, 16, 16)),
    "bottleneck": (lambda: Bottleneck(4), (3, 16, 16)),
    "vgg": (deep_vgg, (3, 16, 16)),
    "dense": (DeepDense, (3, 12, 12)),
    "mobile": (DeepMobile, (3, 12, 12)),
    "leaky": (lambda: LeakyResNet(8, 6), (3, 16, 16)),
    "unet": (DeepUNet, (2, 16, 16)),
    "reversible": (Reversible, (3, 16, 16)),
    "segmentation": (lambda: DeepUNet(3, 6, 1, 4), (3, 16, 16)),  # colour images to four classes of pixels
}
