# SPDX-License-Identifier: Apache-2.0
"""The models of host.py: what makes each, a batch of it, and what sluicec has to know. Libraries are imported for the model that is asked for, so that a process of PyTorch holds no others."""
import pathlib
import sys
from dataclasses import dataclass
from typing import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test/models"))
from samples import Ids, Lengths, make_data, still  # noqa: E402

CLASSES = 1000


@dataclass
class Net:
    """`shape`: of one sample, or for each input what draws it; `maps`: extents over which each position has a class."""
    title: str
    batch: int
    create: Callable
    shape: object = (3, 224, 224)
    classes: int = CLASSES
    maps: tuple = None
    loss: str = "softmax-cross-entropy"

    def make(self):
        """In training, with nothing that is drawn: the same work in every system."""
        return still(self.create()).train()

    def data(self):
        return make_data(self.shape, self.classes, self.batch, 1, self.maps)

    @property
    def sees_images(self):
        return isinstance(self.shape, tuple)


def vision(name):
    def create():
        import torchvision
        return torchvision.models.get_model(name, weights=None)
    return create


def vit_tiny():
    import timm
    return timm.create_model("vit_tiny_patch16_224", num_classes=CLASSES)


def unet():
    from networks import DeepUNet
    return DeepUNet(3, 32, 2, 4)


def gpt():
    from zoo_own import Decoder
    return Decoder(vocabulary=1024, context=256, width=384, heads=6, layers=6)


def bert():
    from zoo_own import TextEncoder
    return TextEncoder(vocabulary=8192, context=128, width=512, classes=10, heads=8, inner=2048, layers=4)


def lstm():
    from torch import nn
    from zoo_own import Recurrent
    return Recurrent(nn.LSTM, layers=2, vocabulary=8192, width=256, classes=10, hidden=256)


NETS = {"resnet50": Net("ResNet-50", 16, vision("resnet50")),
        "resnet18": Net("ResNet-18", 16, vision("resnet18")),
        "densenet121": Net("DenseNet-121", 8, vision("densenet121")),
        "unet": Net("U-Net, 192x192", 4, unet, (3, 192, 192), 4, (192, 192)),
        "efficientnet_b0": Net("EfficientNet-B0", 8, vision("efficientnet_b0")),
        "mobilenet_v2": Net("MobileNet-v2", 16, vision("mobilenet_v2")),
        "vit_tiny": Net("ViT-Tiny", 16, vit_tiny),
        "gpt": Net("GPT, 6 layers of 384, 256 tokens", 8, gpt, {"input": Ids(1024, 256)}, 1024, (256,), "token-cross-entropy"),
        "convnext_tiny": Net("ConvNeXt-T", 8, vision("convnext_tiny")),
        "vgg16": Net("VGG-16", 8, vision("vgg16")),
        "shufflenet_v2": Net("ShuffleNet-v2", 16, vision("shufflenet_v2_x1_0")),
        "regnet_y_400mf": Net("RegNet-Y 400MF", 16, vision("regnet_y_400mf")),
        "mobilenet_v3": Net("MobileNet-v3 large", 16, vision("mobilenet_v3_large")),
        "bert": Net("BERT, 4 layers of 512, 128 tokens", 16, bert, {"ids": Ids(8192, 128), "mask": Lengths(128)}, 10),
        "lstm": Net("LSTM, 2 layers of 256, 128 tokens", 32, lstm, {"input": Ids(8192, 128)}, 10)}
