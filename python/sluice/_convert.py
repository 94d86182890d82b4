# SPDX-License-Identifier: Apache-2.0
"""python -m sluice convert SOURCE... OUT: Parquet and Arrow files as data that programs read, by pyarrow.

Encoded images with a class become shards, other columns a folder of .npy files, or a table where OUT ends in .csv. Rows keep their order. Files are not trusted:
what does not fit is refused with file, row and column, and OUT appears when all of it is written."""
import argparse
import csv
import io
import json
import pathlib
import shlex
import shutil
import sys
import tarfile
import tempfile

import numpy as np

from ._columns import Refused, chosen_columns, ending_of, files_of, image_bytes, is_image, open_all, places, refuse_null, storage, values_of

SHARD_BYTES = 1 << 28
MOST_IMAGE_BYTES = 1 << 28  # as programs have it


class Numbers:
    """One array of all rows: of a column of numbers or of lists of as many each, or of several columns of numbers beside each other."""

    def __init__(self, name, columns, schema):
        self.name, self.columns, self.shape, self.lengths = name, columns, None, []  # lengths: of the lists in each other
        leaves = {self._leaf(schema.field(column)) for column in columns}
        floats = any(leaf.kind == "f" for leaf in leaves)
        self.type = np.dtype(np.float32 if floats else leaves.pop() if len(leaves) == 1 else np.int64)

    def _leaf(self, field):
        """What programs read of its numbers: float32, int64, bytes or booleans."""
        import pyarrow as pa
        kind = storage(field.type)[0]
        while pa.types.is_nested(kind) and not pa.types.is_struct(kind) and not pa.types.is_map(kind):
            kind = kind.value_type
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return np.dtype(np.float32)
        if pa.types.is_boolean(kind) or kind == pa.uint8():
            return np.dtype(np.bool_ if pa.types.is_boolean(kind) else np.uint8)
        if pa.types.is_integer(kind):
            return np.dtype(np.int64)
        advice = "; OUT.csv makes a table, in which it may be a category" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else ""
        raise Refused(f"column '{field.name}' holds {field.type}, not numbers{advice}; --columns says which ones are wanted")

    def take(self, columns, where):
        """The values of some rows, converted."""
        parts = [self._dense(columns[column], lambda row, column=column: where(row, column)) for column in self.columns]
        if len(parts) > 1 and any(part.ndim > 1 for part in parts):
            raise Refused(f"'{self.name}' is of {', '.join(self.columns)}, of which some are lists; only numbers come beside each other")
        values = np.stack(parts, 1) if len(parts) > 1 else parts[0]
        self.shape = self.shape or values.shape[1:]
        return values

    def _dense(self, array, where):
        import pyarrow as pa
        import pyarrow.compute
        said, dims, rows = storage(array.type)[1], [], len(array)
        array = values_of(array)
        while pa.types.is_nested(array.type):
            per = len(array) // max(1, rows)
            refuse_null(array, lambda at, per=per: where(at // per))
            lengths = pa.compute.list_value_length(array).to_numpy(zero_copy_only=False)
            if len(dims) == len(self.lengths):
                self.lengths.append(int(lengths[0]))
            wanted = self.lengths[len(dims)]
            if (lengths != wanted).any():
                at = int((lengths != wanted).argmax())
                raise Refused(f"{where(at // per)} has {lengths[at]} values, others have {wanted}; programs take as many in each row")
            dims.append(wanted)
            array = array.flatten()
        refuse_null(array, lambda at, per=len(array) // max(1, rows): where(at // max(1, per)))
        values = np.asarray(array.cast(pa.float64()) if pa.types.is_decimal(array.type) else array.to_numpy(zero_copy_only=False))
        return self._converted(values, where, len(array) // max(1, rows)).reshape(rows, *(said if said else dims))

    def _converted(self, values, where, per):
        with np.errstate(over="ignore", invalid="ignore"):
            result = values.astype(self.type)
        if self.type == np.float32:
            lost = np.isinf(result) & ~np.isinf(values) if values.dtype.kind == "f" else result.astype(np.float64) != values.astype(np.float64)
        else:
            lost = result != values
        if lost.any():
            at = int(lost.argmax())
            raise Refused(f"{where(at // max(1, per))} is {values[at]}, which {self.type} cannot hold")
        return result


def write_arrays(sources, arrays, out):
    """A folder of NAME.npy."""
    rows, schema = sum(source.rows for source in sources), sources[0].schema
    made = [Numbers(name, columns, schema) for name, columns in arrays.items()]
    wanted, files, at = [column for array in made for column in array.columns], {}, 0
    out.mkdir()
    for source in sources:
        for first, columns in source.batches(wanted):
            for array in made:
                values = array.take(columns, places(source, first))
                if array.name not in files:
                    files[array.name] = np.lib.format.open_memmap(out / f"{array.name}.npy", "w+", array.type, (rows, *array.shape))
                files[array.name][at:at + len(values)] = values
            at += len(values)
    if at != rows:
        raise Refused(f"{sources[0].path}: {at} rows are there, {rows} were announced")
    for file in files.values():
        file.flush()
    print(f"{rows} samples: " + ", ".join(f"{name} {tuple(file.shape[1:])} {file.dtype}" for name, file in files.items()))


def write_table(sources, arrays, path):
    """A table of numbers and words, whose first line names the columns."""
    import pyarrow as pa
    columns = [column for names in arrays.values() for column in names]
    for column in columns:
        kind = storage(sources[0].schema.field(column).type)[0]
        if pa.types.is_nested(kind) or is_image(kind):
            raise Refused(f"column '{column}' holds {kind}, which no field of a table does; --columns says which ones are wanted")
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        for source in sources:
            for first, batch in source.batches(columns):
                fields = [values_of(batch[column]).to_pylist() for column in columns]
                for number, row in enumerate(zip(*fields)):
                    table.writerow([field(value, lambda c=column: places(source, first)(number, c)) for value, column in zip(row, columns)])
    print(f"{sum(source.rows for source in sources)} samples: {', '.join(columns)}")


def field(value, where):
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and any(character in value for character in "\r\n\0"):
        raise Refused(f"{where()} has a line of its own, which no field of a table does")
    return "" if value is None else value


def class_names(sources, column):
    """Of a label: those that a data set of Hugging Face says, or the sorted words of the column; none for plain numbers."""
    import pyarrow as pa
    schema = sources[0].schema
    kind = storage(schema.field(column).type)[0]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        words = set()
        for source in sources:
            for first, columns in source.batches([column]):
                refuse_null(values_of(columns[column]), lambda row: places(source, first)(row, column))
                words.update(values_of(columns[column]).to_pylist())
        return sorted(words)
    try:
        said = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))["info"]["features"][column]["names"]
        return [str(name) for name in said]
    except (KeyError, TypeError, ValueError):
        return []


class Shards:
    """Tar files of WebDataset in a folder."""

    def __init__(self, folder):
        self.folder, self.tar, self.bytes, self.count = folder, None, 0, 0
        folder.mkdir()

    def add(self, key, members):
        size = sum(len(data) for data in members.values())
        if self.tar is None or self.bytes + size > SHARD_BYTES:
            self.close()
            self.tar = tarfile.open(self.folder / f"{self.count:06}.tar", "w", format=tarfile.USTAR_FORMAT)
            self.count, self.bytes = self.count + 1, 0
        self.bytes += size
        for ending, data in members.items():
            about = tarfile.TarInfo(f"{key:012}{ending}")
            about.size = len(data)
            self.tar.addfile(about, io.BytesIO(data))

    def close(self):
        if self.tar:
            self.tar.close()


def write_images(sources, image, label, out):
    """Shards of an image and a class each; says how the program is told the classes' names."""
    import pyarrow as pa
    names = class_names(sources, label)
    numbers = {name: number for number, name in enumerate(names)}
    words = names and not pa.types.is_integer(storage(sources[0].schema.field(label).type)[0])
    classes, shards, key = Numbers(label, [label], sources[0].schema) if not words else None, Shards(out), 0
    for source in sources:
        for first, columns in source.batches([image, label]):
            where = places(source, first)
            labels = [numbers[word] for word in values_of(columns[label]).to_pylist()] if words else classes.take(columns, where)
            if not words and (classes.type.kind == "f" or labels.ndim > 1):
                raise Refused(f"column '{label}' holds no class: {sources[0].schema.field(label).type}")
            for row, (data, number) in enumerate(zip(image_bytes(columns[image], lambda row: where(row, image)), labels)):
                if len(data) > MOST_IMAGE_BYTES:
                    raise Refused(f"{where(row, image)} has {len(data)} bytes, an image has at most {MOST_IMAGE_BYTES}")
                shards.add(key, {ending_of(data, where(row, image)): data, ".cls": str(int(number)).encode()})
                key += 1
    shards.close()
    print(f"{key} images in {shards.count} shards" + (f" of {len(names)} classes" if names else ""))
    return names


def images_among(schema, arrays):
    """(image, label) where the columns are an encoded image and its class; None where there are no images."""
    columns = [column for names in arrays.values() for column in names]
    images = [column for column in columns if is_image(schema.field(column).type)]
    if not images:
        return None
    others = [column for column in columns if column not in images]
    if len(images) > 1 or len(others) != 1:
        raise Refused(f"an image and its class are wanted, not {len(images)} images ({', '.join(images)}) and {len(others)} other columns ({', '.join(others)}); "
                      f"say which ones: --columns input={images[0]} --columns target={others[0] if others else 'COLUMN'}")
    return images[0], others[0]


def convert(sources, out, words=()):
    """Returns the words of --data, and names of classes. Throws what pyarrow throws for files that are damaged."""
    if out.exists():
        raise Refused(f"{out} exists already")
    opened = open_all(files_of(sources))
    arrays, names, kind = chosen_columns(opened[0].schema, words), [], ""
    work = pathlib.Path(tempfile.mkdtemp(dir=out.parent, prefix=".sluice-convert-"))
    try:
        made = work / out.name
        if out.suffix == ".csv":
            write_table(opened, arrays, made)
            kind = "csv:"
        elif found := images_among(opened[0].schema, arrays):
            names = write_images(opened, *found, made)
            kind = "shards:"
        else:
            write_arrays(opened, arrays, made)
        made.rename(out)
    finally:
        shutil.rmtree(work)
    return kind + str(out), names


def main(arguments):
    parser = argparse.ArgumentParser(prog="sluice convert", description="Makes data for programs of Parquet and Arrow files: shards of encoded images with a "
                                     "class, a folder of .npy files of numbers and lists, or a table where OUT ends in .csv.")
    parser.add_argument("source", nargs="+", type=pathlib.Path, metavar="SOURCE", help="file (.parquet, .arrow, .feather), or folder of them in the order of their names")
    parser.add_argument("out", type=pathlib.Path, metavar="OUT", help="folder or table to make")
    parser.add_argument("--columns", action="append", default=[], metavar="NAME=REGEX",
                        help="array NAME is of the columns whose whole names match, in the file's order; others are left out (default: each column is an array)")
    options = parser.parse_args(arguments)
    try:
        import pyarrow
    except ModuleNotFoundError:
        sys.exit("sluice convert: error: the library of Arrow is missing; pip install pyarrow")
    try:
        data, names = convert(options.source, options.out, options.columns)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        sys.exit(f"sluice convert: error: {error}")
    print("--data " + " ".join([data, *("--class " + shlex.quote(name) for name in names)]))
