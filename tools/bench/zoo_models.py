# SPDX-License-Identifier: Apache-2.0
"""The models of the zoo: a small one of every family of torchvision that classifies, segments or takes video, 95 of timm, of more than 70 families, architectures of
Hugging Face's transformers (zoo_transformers.py), and the own ones of zoo_own.py. Weights are random, nothing is downloaded. Images are 64x64 where the model takes them, else what it is made for."""
import pathlib
import sys
from dataclasses import dataclass, field
from typing import Callable

import timm
import torch
import torchvision
from torch import nn

import zoo_own as own
import zoo_transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test/models"))
from networks import DeepUNet  # noqa: E402
from samples import Ids, Lengths, make_data  # noqa: E402

CLASSES = 10


@dataclass
class Model:
    """`shape`: of one sample, or for each input what draws it; `targets`: the number of classes, or the shape of one regression target;
    `maps`: extents over which each position has a class; `trains`: one of the sample that is trained beside PyTorch."""
    name: str
    family: str
    make: Callable[[], nn.Module]
    shape: object
    targets: object = CLASSES
    maps: tuple = None
    loss: str = "softmax-cross-entropy"
    trains: bool = field(default=False)

    def data(self, batch, steps):
        return make_data(self.shape, self.targets, batch, steps, self.maps)


# Image sizes that are not 64: alexnet's, vgg's and googlenet's adaptive pools export where the extents divide, windows need their multiples.
TORCHVISION = {"alexnet": 224, "convnext_tiny": 64, "densenet121": 64, "efficientnet_b0": 64, "efficientnet_v2_s": 64, "googlenet": 64, "inception_v3": 299,
               "maxvit_t": 224, "mnasnet0_5": 64, "mobilenet_v2": 64, "mobilenet_v3_small": 64, "regnet_x_400mf": 64, "regnet_y_400mf": 64, "resnet18": 64,
               "resnet50": 64, "resnext50_32x4d": 64, "shufflenet_v2_x0_5": 64, "squeezenet1_1": 64, "swin_t": 224, "swin_v2_t": 256, "vgg11": 224,
               "vgg11_bn": 224, "vit_b_32": 224, "wide_resnet50_2": 64}
SEGMENTATION = ["deeplabv3_mobilenet_v3_large", "deeplabv3_resnet50", "fcn_resnet50", "lraspp_mobilenet_v3_large"]
VIDEO = {"mc3_18": (3, 8, 64, 64), "mvit_v1_b": (3, 16, 224, 224), "mvit_v2_s": (3, 16, 224, 224), "r2plus1d_18": (3, 8, 64, 64), "r3d_18": (3, 8, 64, 64),
         "s3d": (3, 16, 224, 224), "swin3d_t": (3, 8, 64, 64)}
# timm's models; those that take one size only are exported at it.
TIMM = """bat_resnext26ts beit_base_patch16_224 botnet26t_256 caformer_s18 cait_xxs24_224 coat_lite_tiny coatnet_nano_rw_224 convformer_s18 convit_tiny
  convmixer_768_32 convnext_atto convnextv2_atto crossvit_tiny_240 cs3darknet_s cspresnet50 davit_tiny deit_tiny_patch16_224 densenet121 dla34 dpn48b
  eca_nfnet_l0 edgenext_xx_small efficientformer_l1 efficientformerv2_s0 efficientnet_lite0 efficientvit_b0 efficientvit_m0 ese_vovnet19b_dw
  eva02_tiny_patch14_224 fasternet_t0 fastvit_t8 fbnetc_100 focalnet_tiny_srf gcresnext26ts gcvit_xxtiny gernet_s ghostnet_050 gmixer_12_224
  gmlp_ti16_224 halonet26t hardcorenas_a hgnetv2_b0 hiera_tiny_224 hrnet_w18_small inception_next_atto inception_v4 lambda_resnet26t lcnet_050
  legacy_seresnet18 levit_128s mambaout_femto maxxvit_rmlp_nano_rw_256 mixer_s32_224 mixnet_s mobilenetv4_conv_small mobileone_s0 mobilevit_xxs
  mobilevitv2_050 mvitv2_tiny nasnetalarge nest_tiny nextvit_small nf_resnet26 pit_ti_224 poolformer_s12 pvt_v2_b0 rdnet_tiny regnetz_005
  repghostnet_050 repvgg_a0 repvit_m0_9 res2net50_26w_4s resmlp_12_224 resnest14d resnetv2_50 rexnet_100 selecsls42 sequencer2d_s shvit_s1
  skresnet18 starnet_s1 swiftformer_xs swin_tiny_patch4_window7_224 swinv2_cr_tiny_224 tiny_vit_5m_224 tinynet_e tnt_s_patch16_224 tresnet_m
  twins_svt_small visformer_tiny vit_tiny_patch16_224 vitamin_small_224 volo_d1_224 xception41 xcit_nano_12_p16_224""".split()
TIMM_SIZES = {"davit_tiny": 224, "halonet26t": 256, "bat_resnext26ts": 256, "lambda_resnet26t": 256, "tiny_vit_5m_224": 224, "nasnetalarge": 96,
              "inception_v4": 96, "focalnet_tiny_srf": 224}
TRAINS = """alexnet convnext_tiny densenet121 efficientnet_b0 googlenet maxvit_t mnasnet0_5 mobilenet_v2 mobilenet_v3_small regnet_x_400mf regnet_y_400mf
  resnet18 resnext50_32x4d shufflenet_v2_x0_5 squeezenet1_1 swin_t vgg11_bn vit_b_32 lraspp_mobilenet_v3_large r3d_18
  timm/convnextv2_atto timm/deit_tiny_patch16_224 timm/eca_nfnet_l0 timm/edgenext_xx_small timm/fasternet_t0 timm/ghostnet_050 timm/hrnet_w18_small
  timm/lcnet_050 timm/mixer_s32_224 timm/mobilenetv4_conv_small timm/mobilevit_xxs timm/poolformer_s12 timm/pvt_v2_b0 timm/repvgg_a0 timm/resmlp_12_224
  transformers/albert transformers/bart transformers/bert transformers/bloom transformers/convnextv2 transformers/levit transformers/mamba
  transformers/pvt-v2 transformers/segformer transformers/swin transformers/t5 transformers/vit
  own/gpt own/bert own/text-pool own/lstm own/gru own/rnn own/unet own/generator own/unet3d own/super-resolution own/discriminator own/two-towers own/cnn1d""".split()


class Named(nn.Module):
    """One of the results that a model returns as a dict: what is exported has one output."""
    def __init__(self, model, key):
        super().__init__()
        self.model, self.key = model, key

    def forward(self, x):
        return self.model(x)[self.key]


def of_torchvision(name):
    more = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return torchvision.models.get_model(name, weights=None, num_classes=CLASSES, **more)


def of_segmentation(name):
    return Named(torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=CLASSES), "out")


def family_of(name):
    """torchvision keeps a family in a file."""
    return torchvision.models.get_model_builder(name).__module__


def forgotten():
    """Models of torchvision of whose family none is in the zoo."""
    models = torchvision.models
    known = [*TORCHVISION, *SEGMENTATION, *VIDEO]
    families = {family_of(name) for name in known}
    return [name for module in (models, models.segmentation, models.video) for name in models.list_models(module=module)
            if family_of(name) not in families]


def timm_size(name):
    shape = timm.get_pretrained_cfg(name)
    return TIMM_SIZES.get(name) or (shape.input_size[1] if shape.fixed_input_size else 64)


def own_models():
    ids = Ids(64, 32)
    text = {"input": ids}  # a program reads its only input from input.npy
    padded = {"ids": ids, "mask": Lengths(32)}
    small = {"gpt": Model("", "text", own.Decoder, text, 64, (32,), "token-cross-entropy"),
             "bert": Model("", "text", own.TextEncoder, padded),
             "bert-norm-first": Model("", "text", lambda: own.TextEncoder(first=True), padded),
             "text-pool": Model("", "text", own.TextPool, text),
             "lstm": Model("", "recurrent", lambda: own.Recurrent(nn.LSTM), text),
             "lstm-bidirectional": Model("", "recurrent", lambda: own.Recurrent(nn.LSTM, 2, True), text),
             "gru": Model("", "recurrent", lambda: own.Recurrent(nn.GRU), text),
             "rnn": Model("", "recurrent", lambda: own.Recurrent(nn.RNN), text),
             "unet": Model("", "maps", lambda: DeepUNet(3, 8, 2, CLASSES), (3, 64, 64), CLASSES, (64, 64)),
             "unet3d": Model("", "volume", own.VolumeUnet, (1, 16, 16, 16), 3, (16, 16, 16)),
             "super-resolution": Model("", "image", own.SuperResolution, (3, 24, 24), (3, 48, 48), loss="mse"),
             "discriminator": Model("", "image", own.Discriminator, (3, 32, 32), (1,), loss="bce-with-logits"),
             "generator": Model("", "image", own.Generator, (16,), (3, 16, 16), loss="mse"),
             "two-towers": Model("", "towers", own.TwoTowers, {"user": Ids(50, 4), "item": own.Normal(12)}, (1,), loss="mse"),
             "cnn1d": Model("", "signal", own.Waves, (4, 64))}
    for name, model in small.items():
        model.name = f"own/{name}"
    return list(small.values())


def models():
    """All of the zoo, in the order of the table."""
    if missing := forgotten():
        raise SystemExit(f"zoo: torchvision has families that the zoo lacks: {' '.join(missing)}; add a member to tools/bench/zoo_models.py")
    listed = [Model(name, "torchvision classification", lambda name=name: of_torchvision(name), (3, size, size)) for name, size in TORCHVISION.items()]
    listed += [Model(name, "torchvision segmentation", lambda name=name: of_segmentation(name), (3, 64, 64), CLASSES, (64, 64)) for name in SEGMENTATION]
    listed += [Model(name, "torchvision video", lambda name=name: of_torchvision(name), shape) for name, shape in VIDEO.items()]
    listed += [Model(f"timm/{name}", "timm", lambda name=name: timm.create_model(name, num_classes=CLASSES), (3, timm_size(name), timm_size(name)))
               for name in TIMM]
    listed += zoo_transformers.models(Model)
    listed += own_models()
    for model in listed:
        model.trains = model.name in TRAINS
    return listed
