# SPDX-License-Identifier: Apache-2.0
"""Files of Parquet and Arrow for convert.test, and whether what was made of them holds the same: convert.py make FOLDER; convert.py check FOLDER"""
import io
import json
import pathlib
import sys
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

ROWS = 2500  # more than are in memory at once
random = np.random.default_rng(3)
images = pathlib.Path(__file__).parent.parent / "unit/runtime/images"
x, y = random.random((ROWS, 16), np.float32), random.integers(0, 5, ROWS)
age, height, colour = random.integers(0, 90, ROWS), random.random(ROWS), np.array(["red", "green", "deep, blue"])[random.integers(0, 3, ROWS)]
encoded = [(images / ("colours.jpg" if i % 3 else "palette.png")).read_bytes() for i in range(40)]


def lists(array, kind=None):
    return pa.array(list(array), kind or pa.list_(pa.float32()))


def write_stream(path, table):
    with pa.ipc.new_stream(str(path), table.schema) as stream:
        stream.write_table(table, 700)


def make(folder):
    numbers = pa.table({"input": lists(x), "target": y})
    pq.write_table(numbers, folder / "numbers.parquet", row_group_size=900, compression="zstd")
    pa.feather.write_feather(numbers, str(folder / "numbers.feather"), compression="lz4")
    write_stream(folder / "stream.arrow", numbers)
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel().astype(np.float64)), 16)
    tensor = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), (4, 4)), lists(x, pa.list_(pa.float32(), 16)))
    pq.write_table(pa.table({"fixed": fixed, "nested": lists(x.reshape(-1, 4, 4).tolist(), pa.list_(pa.list_(pa.float32()))), "tensor": tensor,
                             "flag": y > 2, "byte": y.astype(np.uint8)}), folder / "kinds.parquet")
    parts = folder / "parts"
    parts.mkdir()
    for i in range(2):
        pq.write_table(numbers.slice(1250 * i, 1250), parts / f"train-0000{i}-of-00002.parquet")
    pq.write_table(numbers.slice(0, 10), parts / "test-00000-of-00001.parquet")
    pq.write_table(pa.table({"age": age, "height": height, "colour": pa.array(colour).dictionary_encode(), "y": y}), folder / "people.parquet")
    about = {"huggingface": json.dumps({"info": {"features": {"label": {"names": ["cat", "the dog", *"abcdefgh"], "_type": "ClassLabel"}}}})}
    photos = pa.table({"image": pa.array([{"bytes": data, "path": None} for data in encoded]), "label": np.arange(40) % 2}).replace_schema_metadata(about)
    pq.write_table(photos, folder / "photos.parquet", row_group_size=16)
    pq.write_table(photos.set_column(1, "kind", pa.array(["b" if i % 2 else "a" for i in range(40)])), folder / "words.parquet")
    wrong(folder, numbers)


def wrong(folder, numbers):
    values = numbers.column("input").to_pylist()
    values[2000] = values[2000][:15]
    pq.write_table(numbers.set_column(0, "input", lists(values)), folder / "ragged.parquet")
    values[2000] = None
    pq.write_table(numbers.set_column(0, "input", lists(values)), folder / "null.parquet")
    pq.write_table(pa.table({"image": [encoded[0], b"RIFF0000WEBPVP8 "], "label": [0, 1]}), folder / "webp.parquet")
    pq.write_table(pa.table({"x": [1.0, 1e300]}), folder / "large.parquet")
    pq.write_table(pa.table({"../x": [1.0]}), folder / "name.parquet")
    (folder / "damaged.parquet").write_bytes((folder / "numbers.parquet").read_bytes()[:-9])
    whole = bytearray((folder / "numbers.feather").read_bytes())
    whole[len(whole) // 2] ^= 0x55
    (folder / "noise.arrow").write_bytes(bytes(range(256)) * 9)


def same(folder, name):
    found = np.load(folder / name / "input.npy"), np.load(folder / name / "target.npy")
    assert found[0].dtype == np.float32 and found[1].dtype == np.int64 and np.array_equal(found[0], x) and np.array_equal(found[1], y), name


def check(folder):
    for name in ("numbers", "feather", "stream", "parts-made"):
        same(folder, name)
    kinds = {path.stem: np.load(path) for path in (folder / "kinds").iterdir()}
    assert np.array_equal(kinds["fixed"], x) and kinds["fixed"].dtype == np.float32
    assert kinds["nested"].shape == kinds["tensor"].shape == (ROWS, 4, 4) and np.array_equal(kinds["nested"], kinds["tensor"]) and np.array_equal(kinds["tensor"].reshape(ROWS, 16), x)
    assert kinds["flag"].dtype == bool and np.array_equal(kinds["flag"], y > 2) and kinds["byte"].dtype == np.uint8 and np.array_equal(kinds["byte"], y)
    grouped = np.load(folder / "grouped/x.npy")
    assert np.array_equal(grouped, np.stack([age, height], 1).astype(np.float32)) and sorted(p.name for p in (folder / "grouped").iterdir()) == ["target.npy", "x.npy"]
    for name in ("photos", "words"):
        with tarfile.open(folder / name / "000000.tar") as tar:
            members = [(member.name, tar.extractfile(member).read()) for member in tar]
        assert [data for key, data in members if not key.endswith(".cls")] == encoded and [int(data) for key, data in members if key.endswith(".cls")] == [i % 2 for i in range(40)]
        assert [key.partition(".")[2] for key, _ in members if not key.endswith(".cls")] == ["jpg" if i % 3 else "png" for i in range(40)]


{"make": make, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
