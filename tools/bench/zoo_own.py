# SPDX-License-Identifier: Apache-2.0
"""Networks of the zoo that no library has, in plain PyTorch and small: a decoder and an encoder of text, recurrent classifiers, a volume U-Net,
a super-resolution net, a GAN's discriminator, two towers, a one-dimensional CNN. The decoder and the encoder are written as most people write
them, with PyTorch's own layers; test/models/modern.py has them by hand."""
import torch
import torch.nn.functional as F
from torch import nn


class Normal:
    """Samples of normal numbers of a shape."""
    def __init__(self, *shape):
        self.shape = shape

    def draw(self, count, generator):
        return torch.randn((count, *self.shape), generator=generator)


class Decoder(nn.Module):
    """GPT: causal attention of scaled_dot_product_attention, the head has the embedding's weights. Dropout where GPT-2 has it."""
    classes_last = True

    def __init__(self, vocabulary=64, context=32, width=48, heads=4, layers=2, dropout=0.0):
        super().__init__()
        self.dropout = dropout
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers + 1))
        self.mixes = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.outs = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.wides = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(layers))
        self.narrows = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(layers))
        self.head, self.heads = nn.Linear(width, vocabulary, bias=False), heads
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.2)

    def attend(self, x, mix, out):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in mix(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        return self.drop(out(y.transpose(1, 2).reshape(b, t, c)))

    def drop(self, x):
        return F.dropout(x, self.dropout, self.training) if self.dropout else x

    def forward(self, ids):
        x = self.drop(self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device)))
        for i, (mix, out, wide, narrow) in enumerate(zip(self.mixes, self.outs, self.wides, self.narrows)):
            x = x + self.attend(self.norms[2 * i](x), mix, out)
            x = x + self.drop(narrow(F.gelu(wide(self.norms[2 * i + 1](x)), approximate="tanh")))
        return self.head(self.norms[-1](x))


class TextEncoder(nn.Module):
    """BERT by nn.TransformerEncoderLayer with a key padding mask; classifies the mean of what is not padding. No padding_idx: files have no word for
    rows of a table that are not trained."""
    def __init__(self, vocabulary=64, context=32, width=48, classes=10, first=False, heads=4, inner=96, layers=2):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Parameter(0.02 * torch.randn(1, context, width))
        layer = nn.TransformerEncoderLayer(width, heads, inner, dropout=0.1, activation="gelu", batch_first=True, norm_first=first)
        self.layers, self.fc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), nn.Linear(width, classes)

    def forward(self, ids, mask):
        x = self.layers(self.words(ids) + self.places[:, :ids.shape[1]], src_key_padding_mask=mask == 0)
        kept = mask.to(x.dtype).unsqueeze(-1)
        return self.fc((x * kept).sum(1) / kept.sum(1).clamp(min=1))


class Recurrent(nn.Module):
    """Classifies a text by the last state of an LSTM, a GRU or an RNN."""
    def __init__(self, kind, layers=1, bidirectional=False, vocabulary=64, width=24, classes=10, hidden=32):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.layers = kind(width, hidden, layers, batch_first=True, bidirectional=bidirectional)
        self.fc = nn.Linear(2 * hidden if bidirectional else hidden, classes)

    def forward(self, ids):
        y, _ = self.layers(self.words(ids))
        return self.fc(y[:, -1])


class TextPool(nn.Module):
    """Classifies the mean of embeddings: fastText."""
    def __init__(self, vocabulary=64, width=24, classes=10):
        super().__init__()
        self.words, self.fc = nn.Embedding(vocabulary, width), nn.Linear(width, classes)

    def forward(self, ids):
        return self.fc(self.words(ids).mean(1))


def volume_block(inputs, outputs):
    return nn.Sequential(nn.Conv3d(inputs, outputs, 3, padding=1), nn.InstanceNorm3d(outputs, affine=True), nn.LeakyReLU(0.01),
                         nn.Conv3d(outputs, outputs, 3, padding=1), nn.InstanceNorm3d(outputs, affine=True), nn.LeakyReLU(0.01))


class VolumeUnet(nn.Module):
    """A class for each voxel."""
    def __init__(self, channels=1, classes=3, width=8):
        super().__init__()
        self.down1, self.down2 = volume_block(channels, width), volume_block(width, 2 * width)
        self.bottom, self.pool = volume_block(2 * width, 4 * width), nn.MaxPool3d(2)
        self.up2, self.up1 = nn.ConvTranspose3d(4 * width, 2 * width, 2, 2), nn.ConvTranspose3d(2 * width, width, 2, 2)
        self.join2, self.join1 = volume_block(4 * width, 2 * width), volume_block(2 * width, width)
        self.head = nn.Conv3d(width, classes, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        y = self.join2(torch.cat([self.up2(self.bottom(self.pool(b))), b], 1))
        return self.head(self.join1(torch.cat([self.up1(y), a], 1)))


class SuperResolution(nn.Module):
    """EDSR: residual blocks without normalization, pixel shuffle, added to the bicubic image."""
    def __init__(self, width=16, blocks=3, scale=2):
        super().__init__()
        self.head, self.scale = nn.Conv2d(3, width, 3, padding=1), scale
        self.blocks = nn.ModuleList(nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.PReLU(), nn.Conv2d(width, width, 3, padding=1))
                                    for _ in range(blocks))
        self.up = nn.Sequential(nn.Conv2d(width, 3 * scale * scale, 3, padding=1), nn.PixelShuffle(scale))

    def forward(self, x):
        y = self.head(x)
        for block in self.blocks:
            y = y + 0.1 * block(y)
        return self.up(y) + F.interpolate(x, scale_factor=self.scale, mode="bicubic", align_corners=False)


class Discriminator(nn.Sequential):
    """DCGAN's: strided convolutions, whether an image is real."""
    def __init__(self, width=16):
        super().__init__(nn.Conv2d(3, width, 4, 2, 1), nn.LeakyReLU(0.2),
                         nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.LeakyReLU(0.2),
                         nn.Conv2d(2 * width, 4 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * width), nn.LeakyReLU(0.2),
                         nn.Conv2d(4 * width, 1, 4), nn.Flatten())


class Generator(nn.Sequential):
    """DCGAN's: transposed convolutions from noise to an image."""
    def __init__(self, noise=16, width=16):
        super().__init__(nn.Unflatten(1, (noise, 1, 1)), nn.ConvTranspose2d(noise, 4 * width, 4, bias=False), nn.BatchNorm2d(4 * width), nn.ReLU(),
                         nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
                         nn.ConvTranspose2d(2 * width, 3, 4, 2, 1), nn.Tanh())


class TwoTowers(nn.Module):
    """Scores of a user and an item: embedded ids beside numbers, normalized, multiplied."""
    def __init__(self, users=50, width=16):
        super().__init__()
        self.users = nn.Embedding(users, width)
        self.left = nn.Sequential(nn.Linear(4 * width, 32), nn.ReLU(), nn.Linear(32, width))
        self.right = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, width))

    def forward(self, user, item):
        left, right = F.normalize(self.left(self.users(user).flatten(1)), dim=-1), F.normalize(self.right(item), dim=-1)
        return 5.0 * (left * right).sum(-1, keepdim=True)


class Waves(nn.Sequential):
    """A one-dimensional CNN over a signal of several channels."""
    def __init__(self, channels=4, classes=10):
        super().__init__(nn.Conv1d(channels, 16, 7, padding=3), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(2),
                         nn.Conv1d(16, 32, 5, stride=2, padding=2), nn.BatchNorm1d(32), nn.ReLU(),
                         nn.Conv1d(32, 32, 3, padding=2, dilation=2, groups=4), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, classes))
