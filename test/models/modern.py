# SPDX-License-Identifier: Apache-2.0
"""ConvNeXt (Liu et al., A ConvNet for the 2020s, 2022), the vision transformer (Dosovitskiy et al., An Image is Worth 16x16 Words, 2021), a
decoder (Radford et al., Language Models are Unsupervised Multitask Learners, 2019) and an encoder of text (Devlin et al., BERT, 2019) in small."""
import torch
import torch.nn.functional as F
from torch import nn


class LayerNormImage(nn.LayerNorm):
    """Of the channels of NCHW images, as torchvision writes it."""
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    """Depthwise convolution, layer normalization, two linear layers with gelu on [N,H,W,C], a scale per channel."""
    def __init__(self, width):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width, 1e-6)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width, 1, 1), 0.5))

    def forward(self, x):
        y = self.norm(self.conv(x).permute(0, 2, 3, 1))
        return x + self.scale * self.narrow(F.gelu(self.wide(y))).permute(0, 3, 1, 2)


class ConvNext(nn.Sequential):
    """The last gelu is the one by tanh."""
    def __init__(self):
        super().__init__(nn.Conv2d(3, 8, 2, 2), LayerNormImage(8, 1e-6), ConvNextBlock(8), ConvNextBlock(8),
                         LayerNormImage(8, 1e-6), nn.Conv2d(8, 12, 2, 2), ConvNextBlock(12), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(1), nn.LayerNorm(12), nn.GELU("tanh"), nn.Linear(12, 10))


class Attention(nn.Module):
    """A transformer's encoder layer, normalized first."""
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class Vit(nn.Module):
    """Patches, a class token, learned positions."""
    def __init__(self, width=12):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.token, self.positions = nn.Parameter(torch.randn(1, 1, width)), nn.Parameter(torch.randn(1, 5, width))
        self.layers = nn.Sequential(Attention(width, 2), Attention(width, 3), nn.LayerNorm(width))
        self.fc = nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.fc(self.layers(x)[:, 0])


class CausalAttention(nn.Module):
    """Heads that see no later token: PyTorch's fused attention, or scores masked by a buffer that is longer than the text."""
    def __init__(self, width, heads, context, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(context, context)).view(1, 1, context, context))

    def forward(self, x):
        b, t, width = x.shape
        q, k, v = (part.view(b, t, self.heads, width // self.heads).transpose(1, 2) for part in self.mix(x).split(width, 2))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
            y = scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf")).softmax(-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(b, t, width))


class Decoder(nn.Module):
    """A layer normalized first, with either gelu."""
    def __init__(self, width, heads, context, fused):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = CausalAttention(width, heads, context, fused)
        self.wide, self.gelu, self.narrow = nn.Linear(width, 4 * width), nn.GELU("tanh" if fused else "none"), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.narrow(self.gelu(self.wide(self.norm2(x))))


class Gpt(nn.Module):
    """Scores of the next token for each token; the head's weights are the embedding's."""
    classes_last = True

    def __init__(self, vocabulary=23, context=16, width=16):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.layers = nn.ModuleList(Decoder(width, 2, context, fused) for fused in (False, True))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.25)  # PyTorch's own would make scores of 10

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Encoder(nn.Module):
    """A layer normalized last, whose padding is masked by addition, or by truth values in PyTorch's fused attention."""
    def __init__(self, width, heads, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)

    def forward(self, x, mask):
        b, t, _ = x.shape
        q, k, v = (part(x).view(b, t, self.heads, -1).transpose(1, 2) for part in (self.query, self.key, self.value))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :].bool().expand(b, 1, t, t))
        else:
            hidden = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
            y = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + hidden, -1) @ v
        x = self.norm1(x + self.out(y.transpose(1, 2).reshape(b, t, -1)))
        return self.norm2(x + self.narrow(F.gelu(self.wide(x))))


class Bert(nn.Module):
    """A class for each text; padding is masked, positions are a buffer, all tokens are of one kind."""
    def __init__(self, vocabulary=29, context=16, width=16):
        super().__init__()
        self.words, self.positions, self.kinds = nn.Embedding(vocabulary, width), nn.Embedding(context, width), nn.Embedding(2, width)
        self.register_buffer("places", torch.arange(context).expand((1, -1)))
        self.norm = nn.LayerNorm(width, 1e-12)
        self.layers = nn.ModuleList(Encoder(width, 2, fused) for fused in (False, True))
        self.pool, self.fc = nn.Linear(width, width), nn.Linear(width, 3)

    def forward(self, input_ids, attention_mask):
        x = self.words(input_ids) + self.positions(self.places[:, :input_ids.shape[1]]) + self.kinds(torch.zeros_like(input_ids))
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x, attention_mask)
        return self.fc(torch.tanh(self.pool(x[:, 0])))
