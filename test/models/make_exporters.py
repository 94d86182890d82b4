#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the small models of test/models/exporters: what tf2onnx, paddle2onnx and skl2onnx write of attention blocks, with a mask and without,
recurrent layers, also in both directions, convolutions with one channel, perceptrons, also behind principal components, with the losses of six SGD
steps that TensorFlow, Paddle and numpy compute of them. Each exporter needs a Python environment of its own; the results are committed, so the tests
need none.

    pip install tensorflow-cpu tf2onnx;       test/models/make_exporters.py tensorflow
    pip install paddlepaddle paddle2onnx;     test/models/make_exporters.py paddle
    pip install scikit-learn skl2onnx;        test/models/make_exporters.py sklearn

    test/models/make_exporters.py --into DIR EXPORTER    the same in another folder"""
import json
import os
import pathlib
import struct
import sys
import tempfile

import numpy as np

BATCH, STEPS, CLASSES, RATE = 4, 6, 4, 0.1


def save_reference(path, losses):
    """A safetensors file as compare.py reads it."""
    tensors = {"losses": np.array(losses, np.float64), "noise_losses": np.zeros(len(losses))}
    header, body = {"__metadata__": {"batch": str(BATCH), "hyperparameters": json.dumps({"lr": RATE})}}, b""
    for name, values in tensors.items():
        header[name] = {"dtype": "F64", "shape": list(values.shape), "data_offsets": [len(body), len(body) + values.nbytes]}
        body += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def save(folder, x, target, losses):
    (folder / "data").mkdir(exist_ok=True)
    np.save(folder / "data" / "input.npy", x)
    np.save(folder / "data" / "target.npy", target)
    save_reference(folder / "reference.safetensors", losses)
    print(f"{folder.name}: losses {' '.join(f'{loss:.6f}' for loss in losses)}")


def data(shape):
    generator = np.random.default_rng(3)
    return (generator.normal(size=(BATCH * STEPS, *shape)).astype(np.float32), generator.integers(0, CLASSES, BATCH * STEPS))


def batches(x, target):
    return [(x[i:i + BATCH], target[i:i + BATCH]) for i in range(0, len(x), BATCH)]


def tensorflow(root):
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    import keras
    import tensorflow as tf
    import tf2onnx
    from keras import layers

    def gelu(x):
        return keras.activations.gelu(x, approximate=True)  # by erfc, which ONNX lacks, otherwise

    def attention(x):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x))
        return layers.Dense(CLASSES)(layers.GlobalAveragePooling1D()(layers.Dense(16, activation=gelu)(x)))

    def perceptron(x):
        return layers.Dense(CLASSES)(layers.PReLU()(layers.LayerNormalization()(layers.Dense(8, activation=gelu)(x))))

    def recurrent(x):
        return layers.Dense(CLASSES)(layers.GRU(6)(x))

    def bidirectional(x):
        return layers.Dense(CLASSES)(layers.Bidirectional(layers.GRU(3))(layers.Bidirectional(layers.LSTM(4, return_sequences=True))(x)))

    def masked(x):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True))
        return layers.Dense(CLASSES)(layers.PReLU(alpha_initializer=keras.initializers.Constant(0.25), name="slopes")(layers.Dense(6)(x[:, -1])))

    def picture(x):
        return layers.Dense(CLASSES)(layers.Flatten()(layers.Conv2DTranspose(1, 3, strides=2, padding="same")(layers.Conv2D(4, 3)(x))))

    for make, shape in ((attention, (5, 8)), (perceptron, (16,)), (recurrent, (5, 8)), (bidirectional, (5, 8)), (masked, (5, 8)), (picture, (6, 6, 2))):
        keras.utils.set_random_seed(1)
        keras.backend.clear_session()
        x = keras.Input(shape)
        model = keras.Model(x, make(x))
        generator = np.random.default_rng(5)
        for variable in model.trainable_variables:  # the exporter leaves out biases that are zero
            noise = generator.normal(scale=0.1, size=variable.shape)
            if "slopes" not in variable.path:  # which are to be all equal
                variable.assign_add(noise)
        folder = root / f"tensorflow-{make.__name__}"
        folder.mkdir(parents=True, exist_ok=True)
        signature = [tf.TensorSpec((BATCH, *shape), tf.float32, name="input")]
        tf2onnx.convert.from_function(tf.function(lambda x: model(x, training=False)), input_signature=signature, opset=17,
                                      output_path=str(folder / "model.onnx"))
        losses, (x, target) = [], data(shape)
        for part, ids in batches(x, target):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(ids, model(part, training=False)))
            for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
                variable.assign_sub(RATE * gradient)
            losses.append(float(loss))
        save(folder, x, target, losses)


def paddle_models():
    """Layers and the shapes of their samples."""
    import paddle
    from paddle.nn import functional

    class Attention(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value = paddle.nn.Linear(8, 8), paddle.nn.Linear(8, 8), paddle.nn.Linear(8, 8)
            self.norm, self.head = paddle.nn.LayerNorm(8), paddle.nn.Linear(8, CLASSES)
            self.temperature = self.create_parameter([1], default_initializer=paddle.nn.initializer.Constant(1.3))

        def forward(self, x):
            scores = paddle.matmul(self.query(x), self.key(x), transpose_y=True) / 8**0.5 * self.temperature
            x = x + paddle.matmul(functional.softmax(scores, -1), self.value(x))
            x = (x - x.mean(-1, keepdim=True)) * paddle.rsqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5) + self.norm(x)
            return self.head(functional.gelu(x).mean(1))

    class Perceptron(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.first, self.norm, self.slope = paddle.nn.Linear(16, 8), paddle.nn.LayerNorm(8), paddle.nn.PReLU()
            self.second = paddle.nn.Linear(8, CLASSES)

        def forward(self, x):
            return self.second(functional.gelu(self.slope(self.norm(self.first(x)))))

    class Recurrent(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.layer, self.head = paddle.nn.GRU(8, 6), paddle.nn.Linear(6, CLASSES)

        def forward(self, x):
            return self.head(self.layer(x)[0][:, -1])

    class Masked(paddle.nn.Layer):
        """Causal, of inputs that buffers normalize."""
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", paddle.linspace(-0.5, 0.5, 8))
            self.attention, self.norm, self.head = paddle.nn.MultiHeadAttention(8, 2), paddle.nn.LayerNorm(8), paddle.nn.Linear(8, CLASSES)

        def forward(self, x):
            x = x - self.mean
            mask = paddle.triu(paddle.full([5, 5], -1e9), 1)
            return self.head(self.norm(x + self.attention(x, x, x, attn_mask=mask))[:, -1])

    class Picture(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.first, self.second = paddle.nn.Conv2D(2, 4, 3), paddle.nn.Conv2DTranspose(4, 1, 2, stride=2)
            self.third, self.head = paddle.nn.Conv2D(1, 1, 3), paddle.nn.Linear(36, CLASSES)

        def forward(self, x):
            return self.head(self.third(self.second(functional.relu(self.first(x)))).flatten(1))

    return ((Attention, (5, 8)), (Perceptron, (16,)), (Recurrent, (5, 8)), (Masked, (5, 8)), (Picture, (2, 6, 6)))


def paddle(root):
    import paddle
    import paddle2onnx
    from paddle.nn import functional

    for make, shape in paddle_models():
        paddle.seed(1)
        model = make()
        model.eval()
        folder = root / f"paddle-{make.__name__.lower()}"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as saved:
            specification = paddle.static.InputSpec([BATCH, *shape], "float32", "input")
            paddle.jit.save(paddle.jit.to_static(model, input_spec=[specification], full_graph=True), f"{saved}/model")
            paddle2onnx.export(f"{saved}/model.json", f"{saved}/model.pdiparams", str(folder / "model.onnx"), opset_version=17)
        losses, (x, target) = [], data(shape)
        rule = paddle.optimizer.SGD(RATE, parameters=model.parameters())
        model.train()
        for part, ids in batches(x, target):
            loss = functional.cross_entropy(model(paddle.to_tensor(part)), paddle.to_tensor(ids))
            loss.backward()
            rule.step()
            rule.clear_grad()
            losses.append(float(loss))
        save(folder, x, target, losses)


def sklearn(root):
    """Its own losses are of a solver of its own, so numpy computes those of a hidden layer with ReLU."""
    import skl2onnx
    from sklearn.decomposition import PCA
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    x, target = data((6,))

    def perceptron():
        return MLPClassifier((8,), max_iter=5, random_state=1)

    for name, model in (("perceptron", perceptron()), ("components", make_pipeline(StandardScaler(), PCA(4, whiten=True), perceptron()))):
        model.fit(x, target)
        estimator, inputs = (model.steps[-1][1], model[:-1].transform(x)) if name == "components" else (model, x)
        folder = root / f"sklearn-{name}"
        folder.mkdir(parents=True, exist_ok=True)
        file = skl2onnx.to_onnx(model, x[:1], options={id(estimator): {"zipmap": False}}, target_opset=17, black_op={"Scaler"})
        (folder / "model.onnx").write_bytes(file.SerializeToString())
        (a, b), (c, d) = estimator.coefs_, estimator.intercepts_
        losses = []
        for part, ids in batches(inputs.astype(np.float64), target):
            hidden = part @ a + c
            active = np.maximum(hidden, 0)
            scores = np.exp(active @ b + d)
            shares = scores / scores.sum(1, keepdims=True)
            losses.append(-np.log(shares[np.arange(BATCH), ids]).mean())
            gradient = (shares - np.eye(CLASSES)[ids]) / BATCH
            before = (gradient @ b.T) * (hidden > 0)
            a, b, c, d = (a - RATE * part.T @ before, b - RATE * active.T @ gradient, c - RATE * before.sum(0), d - RATE * gradient.sum(0))
        save(folder, x, target, losses)


def main():
    root, names = pathlib.Path(__file__).parent / "exporters", sys.argv[1:]
    if names[:1] == ["--into"]:
        root, names = pathlib.Path(names[1]), names[2:]
    for name in names:
        {"tensorflow": tensorflow, "paddle": paddle, "sklearn": sklearn}[name](root)


main()
