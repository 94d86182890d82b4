# SPDX-License-Identifier: Apache-2.0
"""Models of Hugging Face's transformers for the zoo, two layers each: what a configuration makes of an architecture, with random weights."""
import pathlib
import sys

import transformers
from torch import nn

import zoo_own as own

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test/models"))
from samples import Ids, Lengths  # noqa: E402

CLASSES, WORDS, TOKENS = 10, 100, 16
TEXT = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=WORDS, max_position_embeddings=64, num_labels=CLASSES)
IMAGE = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, image_size=64, patch_size=16, num_labels=CLASSES)
SOUND = {**{key: value for key, value in TEXT.items() if key != "max_position_embeddings"}, "conv_dim": (32, 32, 32), "conv_kernel": (10, 3, 3), "conv_stride": (5, 2, 2),
         "mask_time_prob": 0, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, "classifier_proj_size": 32}
STAGES = dict(hidden_sizes=[16, 32, 40, 64], num_labels=CLASSES)
SEQUENCES = dict(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
                 vocab_size=WORDS, num_labels=CLASSES, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=0)
ROTATED = {**TEXT, "num_key_value_heads": 2}

# Architecture: its class and its configuration. Decoders have no cache: a step of training has no words before.
ENCODERS = {
    "albert": ("AlbertForSequenceClassification", {**TEXT, "embedding_size": 32}), "bert": ("BertForSequenceClassification", TEXT),
    "deberta-v2": ("DebertaV2ForSequenceClassification", {**TEXT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    "distilbert": ("DistilBertForSequenceClassification",
                   dict(dim=64, n_layers=2, n_heads=4, hidden_dim=128, vocab_size=WORDS, max_position_embeddings=64, num_labels=CLASSES)),
    "electra": ("ElectraForSequenceClassification", {**TEXT, "embedding_size": 32}), "mpnet": ("MPNetForSequenceClassification", TEXT),
    "roberta": ("RobertaForSequenceClassification", TEXT), "xlm-roberta": ("XLMRobertaForSequenceClassification", TEXT)}
DECODERS = {
    "bloom": ("BloomForCausalLM", dict(hidden_size=64, n_layer=2, n_head=4, vocab_size=WORDS)),
    "falcon": ("FalconForCausalLM", dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=WORDS)),
    "gemma": ("GemmaForCausalLM", {**ROTATED, "head_dim": 16}),
    "gpt-neo": ("GPTNeoForCausalLM", dict(hidden_size=64, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], vocab_size=WORDS,
                                          max_position_embeddings=64)),
    "gpt-neox": ("GPTNeoXForCausalLM", TEXT), "gpt2": ("GPT2LMHeadModel", dict(n_embd=64, n_layer=2, n_head=4, vocab_size=WORDS, n_positions=64)),
    "llama": ("LlamaForCausalLM", ROTATED), "mamba": ("MambaForCausalLM", dict(hidden_size=64, num_hidden_layers=2, vocab_size=WORDS, state_size=8)),
    "mistral": ("MistralForCausalLM", ROTATED),
    "opt": ("OPTForCausalLM", dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128, vocab_size=WORDS, max_position_embeddings=64,
                                   word_embed_proj_dim=64)),
    "phi": ("PhiForCausalLM", TEXT), "qwen2": ("Qwen2ForCausalLM", ROTATED)}
TRANSLATORS = {
    "bart": ("BartForConditionalGeneration", {**SEQUENCES, "max_position_embeddings": 64}),
    "t5": ("T5ForConditionalGeneration", dict(d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=WORDS, decoder_start_token_id=0))}
VISION = {
    "beit": ("BeitForImageClassification", IMAGE), "convnextv2": ("ConvNextV2ForImageClassification", {**STAGES, "depths": [1, 1, 2, 1]}),
    "deit": ("DeiTForImageClassification", IMAGE),
    "dinov2": ("Dinov2ForImageClassification", {key: value for key, value in IMAGE.items() if key != "intermediate_size"}),
    "levit": ("LevitForImageClassification", dict(image_size=64, hidden_sizes=[32, 48, 64], num_attention_heads=[2, 3, 4], depths=[1, 1, 1], key_dim=[8, 8, 8],
                                                  num_labels=CLASSES)),
    "mobilevit": ("MobileViTForImageClassification", dict(image_size=64, num_labels=CLASSES)),
    "poolformer": ("PoolFormerForImageClassification", {**STAGES, "depths": [1, 1, 1, 1]}),
    "pvt-v2": ("PvtV2ForImageClassification", {**STAGES, "image_size": 64, "depths": [1, 1, 1, 1]}),
    "regnet": ("RegNetForImageClassification", {**STAGES, "hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1], "groups_width": 8}),
    "resnet": ("ResNetForImageClassification", {**STAGES, "embedding_size": 16, "depths": [1, 1, 1, 1]}),
    "swin": ("SwinForImageClassification", dict(image_size=64, embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=4, num_labels=CLASSES)),
    "vit": ("ViTForImageClassification", IMAGE)}
MAPS = {"segformer": ("SegformerForSemanticSegmentation", {**STAGES, "decoder_hidden_size": 32})}
AUDIO = {
    "ast": ("ASTForAudioClassification", {**{key: value for key, value in IMAGE.items() if key != "image_size"}, "max_length": 64, "num_mel_bins": 32},
            "input_values", (64, 32)),
    "hubert": ("HubertForSequenceClassification", SOUND, "input_values", (4000,)),
    "wav2vec2": ("Wav2Vec2ForSequenceClassification", SOUND, "input_values", (4000,)),
    "whisper": ("WhisperForAudioClassification", {**SEQUENCES, "max_source_positions": 32, "num_mel_bins": 20}, "input_features", (20, 64))}


class Scores(nn.Module):
    """A model of positional inputs and one output: its scores."""
    def __init__(self, name, settings, inputs):
        super().__init__()
        kind = getattr(transformers, name)
        self.model, self.inputs = kind(kind.config_class(**settings)), inputs
        self.classes_last = name.endswith(("CausalLM", "LMHeadModel", "ConditionalGeneration"))  # a score for each word after each token

    def forward(self, *values):
        return self.model(**dict(zip(self.inputs, values)), return_dict=True).logits


def models(Model):
    def listed(entries, shape, names, **more):
        for name, (kind, settings, *_) in entries.items():
            yield Model(f"transformers/{name}", "transformers", lambda kind=kind, settings=settings: Scores(kind, settings, names), shape, **more)

    ids, words = Ids(WORDS, TOKENS), dict(targets=WORDS, maps=(TOKENS,), loss="token-cross-entropy")
    uncached = {name: (kind, {**settings, "use_cache": False}) for name, (kind, settings) in {**DECODERS, **TRANSLATORS}.items()}
    yield from listed(ENCODERS, {"ids": ids, "mask": Lengths(TOKENS)}, ("input_ids", "attention_mask"))
    yield from listed({name: uncached[name] for name in DECODERS}, {"input": ids}, ("input_ids",), **words)
    yield from listed({name: uncached[name] for name in TRANSLATORS}, {"ids": ids, "before": ids}, ("input_ids", "decoder_input_ids"), **words)
    yield from listed(VISION, (3, 64, 64), ("pixel_values",))
    yield from listed(MAPS, (3, 64, 64), ("pixel_values",), maps=(16, 16))
    for name, (kind, settings, given, shape) in AUDIO.items():
        yield from listed({name: (kind, settings)}, {"input": own.Normal(*shape)}, (given,))
