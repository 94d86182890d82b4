// SPDX-License-Identifier: Apache-2.0
// What every flag is called, takes and means. How their values are read is in Flags.cpp, what flags mean to one another
// in Arguments.cpp.

#include "runtime/program/Flags.h"

namespace sluice {

namespace {

std::vector<Flag> dataFlags() {
  return {
      {"--data", "DIR|KIND:PATH",
       "train on input.npy and target.npy in DIR, on 'synthetic' data, or on PATH of KIND imagefolder, segmentation, "
       "cifar10, cifar100, idx, npz, safetensors, csv, jsonl, tokens or shards",
       &Arguments::data},
      {"--shuffle", nullptr, "draw the order of each epoch from (seed, epoch) (default: the order of the files)",
       &Arguments::shuffle},
      {"--validation-split", "P%",
       "evaluate on P% of the samples of --data, drawn from the seed, and train on the others; 0.2 is 20%",
       &Arguments::validationSplit, 0.0001, 100, true},
      {"--input", "NAME=image|raw",
       "the bytes that arrays hold for this input are images, value / 255, or numbers as they are, which lie over no "
       "pixels (default: by shapes; targets are numbers)",
       &Arguments::inputs},
      {"--columns", "NAME=REGEX",
       "csv: the columns whose names match are of input NAME, 'target' among them, as often as there are inputs "
       "(default: the column target, or the last one, is the target, the others are the input)",
       &Arguments::columns},
      {"--categorical", "REGEX",
       "csv: these columns hold categories: a number for each in inputs of floats, ids in those of integers",
       &Arguments::categorical},
      {"--standardize", nullptr, "csv: numbers of inputs of floats less their mean, divided by their deviation",
       &Arguments::standardize},
      {"--class", "NAME",
       "what the next class is called, as often as there are classes; TARGET=NAME where targets have their own "
       "(default: as the folders or columns of --data, or as in the checkpoint)",
       &Arguments::classes},
      {"--augment", "NAME[,k=v...];...",
       "change images of bytes, in the order given: resize, center-crop, random-resized-crop, random-crop, flip, "
       "rotate, colour; as 'random-crop,padding=4;flip'",
       &Arguments::augment},
      {"--mean", "X|R,G,B", "subtracted from bytes / 255 (default 0)", &Arguments::mean},
      {"--std", "X|R,G,B", "divides what is left (default 1)", &Arguments::std},
      {"--workers", "N", "threads that read and decode images (default: host 1, cuda as --threads)",
       &Arguments::workers, 1, 1025},
      {"--on-bad-data",
       "stop|skip|keep",
       "end at a sample that cannot be used (default); take the next one, in evaluation none; or keep also NaN",
       &Arguments::onBadData,
       0,
       HUGE_VAL,
       false,
       {"stop", "skip", "keep"}},
      {"--cut-long", nullptr, "cut samples that are larger than all shapes of the program (default: they are bad data)",
       &Arguments::cutLong},
      {"--pad", "NAME=N",
       "what fills up shorter samples of this input (default: 0; of targets what --ignore-index says)",
       &Arguments::pads},
      {"--evaluate", "DIR|KIND:PATH",
       "loss and metrics on these data: after every epoch and at the end, or, without --data, once",
       &Arguments::evaluate},
      {"--predict", "DIR|KIND:PATH", "at the end, what the model makes of each of these samples; needs no targets",
       &Arguments::predict},
      {"--output", "FILE|FOLDER/",
       "where --predict writes it, in the order of the samples: numbers as .npy, with names of samples and classes as "
       ".npz, .csv or .json; of segmentation into a folder, as a PNG for each image; where --generate does, as .jsonl",
       &Arguments::output},
  };
}

std::vector<Flag> generationFlags() {
  return {
      {"--generate", "FILE.jsonl",
       "at the end, what a model that scores the next token adds to each of these prompts: a JSON object a line, with "
       "a "
       "list of ids under the input's name",
       &Arguments::generate},
      {"--tokens", "N", "add N tokens at most (default 128)", &Arguments::tokens, 1, 0x1p31},
      {"--stop", "ID", "end a text before this token, as often as there are such (default: none ends it)",
       &Arguments::stops},
      {"--temperature", "X",
       "draw from softmax(scores / X); 0: always the likeliest token (default 0, with --top-k or --top-p 1)",
       &Arguments::temperature},
      {"--top-k", "K", "draw from the K likeliest tokens (default: all)", &Arguments::topK, 1, 0x1p31},
      {"--top-p", "P", "draw from the likeliest tokens that have probability P together (default 1)", &Arguments::topP},
  };
}

std::vector<Flag> lengthFlags() {
  return {
      {"--steps", "N", "train until step N, counted over resumed runs (default: as --epochs says)", &Arguments::steps,
       0, 0x1p62},
      {"--epochs", "N", "train until N epochs are done (default 1)", &Arguments::epochs, 0, 0x1p62},
  };
}

std::vector<Flag> optimizationFlags() {
  return {
      {"--lr", "X", "learning rate (default 0.01 for sgd, adagrad, rmsprop; 0.0001 for lion; else 0.001)",
       &Arguments::learningRate},
      {"--schedule", "NAME[,k=v...]",
       "constant, step, linear, cosine, one-cycle or plateau, as step,step_size=300,gamma=0.1 (default constant)",
       &Arguments::schedule},
      {"--warmup", "STEPS|P%",
       "the rate rises to --lr over the first STEPS steps, or over P% of all (default 0); 0.05 is 5%",
       &Arguments::warmup, 0, HUGE_VAL, true},
      {"--min-lr", "X", "rate at which step, linear, cosine and plateau end (default 0)", &Arguments::minimumRate},
      {"--momentum", "X", "sgd, rmsprop: momentum (default 0.9 for sgd, 0 for rmsprop)", &Arguments::momentum, 0, 1},
      {"--nesterov", nullptr, "sgd: momentum that looks ahead", &Arguments::nesterov},
      {"--weight-decay", "X", "weight decay (default 0.01 for adamw and lamb, else 0)", &Arguments::weightDecay},
      {"--beta1", "X", "adam, adamw, lamb, lion: decay of the first moment (default 0.9)", &Arguments::beta1, 0, 1},
      {"--beta2", "X", "adam, adamw, lamb, lion: decay of the second (default 0.999, lion 0.99)", &Arguments::beta2, 0,
       1},
      {"--alpha", "X", "rmsprop: decay of the mean of squares (default 0.99)", &Arguments::alpha, 0, 1},
      {"--epsilon", "X", "all but sgd and lion: added to the denominator (default 1e-8, adagrad 1e-10, lamb 1e-6)",
       &Arguments::epsilon},
      {"--lr-decay", "X", "adagrad: the rate is divided by 1 + X * steps done (default 0)", &Arguments::rateDecay},
      {"--group", "REGEX:lr=X,decay=Y",
       "parameters whose whole names match have X times the rate and weight decay Y, as '.*bias:decay=0'",
       &Arguments::groups},
      {"--clip-value", "X", "clip each element of a gradient to [-X, X] (default: none is)", &Arguments::clipValue},
      {"--clip-norm", "X", "clip all gradients by their common norm (compiled with --clip-norm; default: none is)",
       &Arguments::clipNorm},
      {"--accumulate", "N", "a step is the mean of N batches (compiled with --accumulate; default 1)",
       &Arguments::accumulate, 1, 0x1p31},
      {"--loss-scale", "dynamic|X",
       "fp16: the gradient of the loss is multiplied by X, or by what is halved where gradients overflow, in a step "
       "that "
       "is skipped, and doubled after 2000 steps where none do (default dynamic, from 65536)",
       &Arguments::lossScale},
      {"--ema", "DECAY", "evaluate and export a running average of the weights, DECAY of 0 to 1 (compiled with --ema)",
       &Arguments::averageDecay, 0, 1},
      {"--label-smoothing", "X", "cross-entropies: spread X of every target over all classes (default 0)",
       &Arguments::labelSmoothing, 0, 1},
      {"--mixup", "ALPHA",
       "mix each sample with another of its batch, by shares from Beta(ALPHA, ALPHA) (default 0: none)",
       &Arguments::mixup},
      {"--seed", "N", "of initial weights, shuffling, dropout, synthetic data and drawn tokens (default 0)",
       &Arguments::seed},
  };
}

std::vector<Flag> evaluationFlags() {
  return {
      {"--evaluate-every", "N", "evaluate also every N steps (default: after every epoch)", &Arguments::evaluateEvery,
       1, 0x1p62},
      {"--metrics", "NAMES",
       "accuracy, top5, perplexity, mean_iou, precision, recall, f1, auc, mae, r2, confusion, with commas between; "
       "OUTPUT.NAME of one of several outputs, OUTPUT.NAME=INPUT compared with that (default: by losses and shapes)",
       &Arguments::metrics},
      {"--best", "METRIC", "keep the best evaluated state in best.safetensors in the folder of --checkpoint",
       &Arguments::best},
      {"--patience", "N", "end after N evaluations without a better METRIC of --best, which it implies (default loss)",
       &Arguments::patience, 1, 0x1p62},
  };
}

std::vector<Flag> fileFlags() {
  return {
      {"--recipe", "FILE.toml", "flags of this run, KEY = VALUE a line; the command line wins", &Arguments::recipe},
      {"--init", "FILE.safetensors|FOLDER",
       "start from these weights, with [,map=FILE.toml][,skip-mismatched] after them (default: those of the model); "
       "of several files, as a base and adapters, the last that holds a tensor counts",
       &Arguments::init},
      {"--checkpoint", "DIR", "write DIR/checkpoint.safetensors and DIR/recipe.toml at the end",
       &Arguments::checkpoint},
      {"--checkpoint-every", "N", "also write it every N steps (default: after every epoch)",
       &Arguments::checkpointEvery, 1, 0x1p62},
      {"--keep-checkpoints", "N", "keep the last N: DIR/checkpoint-STEP.safetensors (default 1)",
       &Arguments::keepCheckpoints, 1, 1e6},
      {"--checkpoint-trained-only", nullptr,
       "checkpoints lack frozen weights, which --resume takes from the program's weights or from --init",
       &Arguments::checkpointTrainedOnly},
      {"--resume", "DIR", "go on from the checkpoint in DIR, or from this file", &Arguments::resume},
      {"--export", "FILE",
       "write the trained model: FILE.onnx, or FILE.safetensors[,map=FILE.toml][,trained-only]; ,merged adds adapters "
       "to their weights, ,peft writes them alone as PEFT reads them, ,config[=FILE.json] a config.json beside the "
       "weights",
       &Arguments::exportTo},
      {"--log", "FILE.jsonl", "write one JSON object a line: start, steps, evaluations, end", &Arguments::log},
      {"--force", nullptr, "write over files that other programs wrote, and over checkpoints of another run",
       &Arguments::force},
  };
}

std::vector<Flag> inspectionFlags() {
  return {
      {"--plan", nullptr, "print the memory plan and exit", &Arguments::plan},
      {"--report", "FILE.html", "write curves, memory, a timeline and the plan as one page", &Arguments::report},
      {"--tensorboard", "DIR", "write losses, rates and metrics for TensorBoard", &Arguments::tensorboard},
      {"--quiet", nullptr, "print nothing but warnings and errors (default: progress)", &Arguments::quiet},
      {"--trace", "FILE.json", "write a Chrome trace of the first 10 steps, one row per stream", &Arguments::trace},
      {"--dump-gradients", "FILE.safetensors", "write the first step's gradients, before its update",
       &Arguments::dumpGradients},
      {"--profile-out", "FILE", "write measured op times, link rates and fastest engines for sluicec --profile",
       &Arguments::profileOut},
      {"--roofline", nullptr,
       "print what each op takes beside what this machine's measured peaks allow, and which ops lose most",
       &Arguments::roofline},
      {"--profile-errors", "N",
       "into the profile: what lossy codecs do to the gradients of the first N batches, for sluicec --error-budget",
       &Arguments::profileErrors, 1, 1e6},
      {"--help", nullptr, "print this text and exit", &Arguments::help},
      {"--version", nullptr, "print which sluicec made this program, and exit", &Arguments::version},
  };
}

std::vector<Flag> machineFlags() {
  return {
      {"--threads", "N", "kernel threads (default: what the plan was made for; cuda: all, for data)",
       &Arguments::threads, 1, 1025},
      {"--offload-to", "FILE",
       "keep what is offloaded to storage, host memory, or what a pool of packed tensors has no room for, in FILE "
       "(host only)",
       &Arguments::offloadTo},
      {"--no-graph", nullptr, "launch kernels one by one (cuda only)", &Arguments::noGraph},
  };
}

} // namespace

const std::vector<FlagGroup> &flagGroups() {
  static const std::vector<FlagGroup> groups = {
      {"Data", "--data imagefolder:train --augment 'random-resized-crop;flip' --workers 2", dataFlags()},
      {"Generation", "--resume run1 --generate prompts.jsonl --output answers.jsonl --top-p 0.9", generationFlags()},
      {"Length of the run", "--data train --epochs 10", lengthFlags()},
      {"Optimization", "--data train --lr 0.05 --schedule cosine --warmup 100", optimizationFlags()},
      {"Evaluation", "--data train --evaluate test --best accuracy --checkpoint run1", evaluationFlags()},
      {"Files", "--data train --init pretrained.safetensors --checkpoint run1", fileFlags()},
      {"What it does and how long it takes", "--data train --report run.html --tensorboard events", inspectionFlags()},
      {"Machine", "--data train --threads 2", machineFlags()},
  };
  return groups;
}

} // namespace sluice
