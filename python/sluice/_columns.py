# SPDX-License-Identifier: Apache-2.0
"""Files of Parquet and Arrow for _convert.py: their rows in batches, and what their columns hold."""
import contextlib
import re

ENDINGS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".ipc": "arrow", ".feather": "arrow"}
SPLIT = re.compile(r"(train|test|val|valid|validation|dev)\b", re.I)
ROWS = 1024  # that are in memory at once


class Refused(ValueError):
    """What cannot be converted, in words for whoever runs this."""


def files_of(sources):
    """The files that are meant, in order. A folder with several splits of a data set is not one."""
    files = []
    for source in sources:
        if source.is_dir():
            inside = sorted(path for path in source.rglob("*") if path.suffix in ENDINGS and not path.name.startswith("."))
            splits = {found[1].lower() for path in inside if (found := SPLIT.match(path.name))}
            if len(splits) > 1:
                raise Refused(f"{source} has files of {', '.join(sorted(splits))}; name those of one, as {source}/{sorted(splits)[0]}-*")
            files += inside
        else:
            files.append(source)
    if not files:
        raise Refused(f"{', '.join(map(str, sources))}: no {', '.join(ENDINGS)}")
    for file in files:
        if file.suffix not in ENDINGS:
            raise Refused(f"{file}: is not called {', '.join(ENDINGS)}")
    return files


@contextlib.contextmanager
def naming(path):
    """What pyarrow says of a file, with its name."""
    import pyarrow
    try:
        yield
    except (OSError, pyarrow.ArrowException) as error:
        raise Refused(f"{path}: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from None


class Source:
    """A file's schema, how many rows it has, and its rows in batches."""

    def __init__(self, path):
        self.path = path
        with naming(path):
            self._open(path)

    def _open(self, path):
        if ENDINGS[path.suffix] == "parquet":
            import pyarrow.parquet
            self.parquet = pyarrow.parquet.ParquetFile(path)
            self.schema, self.rows = self.parquet.schema_arrow, self.parquet.metadata.num_rows
            return
        self.parquet = None
        with self._reader() as reader:
            self.schema = reader.schema
        self.rows = sum(batch.num_rows for batch in self._arrow_batches())

    def _reader(self):
        """A file of the IPC format, which Feather is, too, or a stream of it, which libraries call .arrow as well."""
        import pyarrow as pa
        file = pa.memory_map(str(self.path))
        try:
            return pa.ipc.open_file(file)
        except pa.ArrowInvalid:
            file.seek(0)
            return pa.ipc.open_stream(file)

    def _arrow_batches(self):
        with self._reader() as reader:
            if hasattr(reader, "num_record_batches"):
                yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
            else:
                yield from reader

    def batches(self, columns):
        """(number of the first row, its columns by name) of at most ROWS each."""
        first = 0
        whole = iter(self.parquet.iter_batches(ROWS, columns=columns) if self.parquet else self._arrow_batches())
        while True:
            with naming(self.path):
                batch = next(whole, None)
            if batch is None:
                return
            for begin in range(0, batch.num_rows, ROWS):
                part = batch.slice(begin, ROWS)
                yield first, {name: part.column(part.schema.get_field_index(name)) for name in columns}
                first += part.num_rows


def open_all(files):
    """Sources that have the same columns of the same types."""
    sources = [Source(file) for file in files]
    first = sources[0]
    names = first.schema.names
    if len(set(names)) < len(names):
        raise Refused(f"{first.path}: two columns have the same name")
    for source in sources[1:]:
        if not source.schema.equals(first.schema, check_metadata=False):
            raise Refused(f"{source.path} has other columns than {first.path}: {short(source.schema)}, not {short(first.schema)}")
    if sum(source.rows for source in sources) == 0:
        raise Refused(f"{first.path}: has no rows")
    return sources


def short(schema):
    return ", ".join(f"{field.name} ({field.type})" for field in schema)


def chosen_columns(schema, words):
    """Which columns are which array: as the words NAME=REGEX say, else each its own. Names become those of files."""
    arrays, taken = {} if words else {name: [name] for name in schema.names}, set()
    for word in words:
        name, equals, expression = word.partition("=")
        try:
            pattern = re.compile(expression)
        except re.error as error:
            raise Refused(f"--columns {word}: {error}") from None
        found = [column for column in schema.names if pattern.fullmatch(column) and column not in taken]
        if not name or not equals or not found:
            raise Refused(f"--columns {word}: " + ("no column matches that no other one has taken; there are " + short(schema) if name and equals else "give NAME=REGEX"))
        arrays.setdefault(name, []).extend(found)
        taken.update(found)
    for name in arrays:
        if not name or name.startswith(".") or any(character in name for character in "/\0\r\n"):
            raise Refused(f"column {name!r} cannot be the name of a file; --columns NAME=REGEX gives another one")
    return arrays


def storage(kind):
    """The type that values are stored as, and the shape that it says, of tensors and categories as of others."""
    import pyarrow as pa
    if isinstance(kind, pa.FixedShapeTensorType):
        if kind.permutation is not None and list(kind.permutation) != sorted(kind.permutation):
            raise Refused(f"{kind}: its dimensions are permuted")
        return kind.storage_type, tuple(kind.shape)
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type, None
    return (kind.value_type, None) if pa.types.is_dictionary(kind) else (kind, None)


def values_of(array):
    """Without what wraps them: extension types, categories."""
    import pyarrow as pa
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def refuse_null(array, where):
    if array.null_count:
        raise Refused(f"{where(array.is_null().to_pylist().index(True))} is empty (null)")


def image_bytes(array, where):
    """The encoded images of a column of bytes, or of {bytes, path} as data sets of Hugging Face have them."""
    import pyarrow as pa
    array = values_of(array)
    if pa.types.is_struct(array.type):
        refuse_null(array, where)
        array = array.field("bytes")
        if array.null_count:
            raise Refused(f"{where(array.is_null().to_pylist().index(True))} has no bytes: it names a file that lies elsewhere")
    refuse_null(array, where)
    return [value.as_py() for value in array]


def ending_of(image, where):
    """By what programs tell them, too."""
    if image[:3] == b"\xff\xd8\xff":
        return ".jpg"
    if image[:8] == b"\x89PNG\r\n\x1a\n":
        return ".png"
    seen = "WebP" if image[8:12] == b"WEBP" else "GIF" if image[:3] == b"GIF" else "TIFF" if image[:4] in (b"II*\0", b"MM\0*") else "BMP" if image[:2] == b"BM" else ""
    raise Refused(f"{where} is {'a ' + seen if seen else 'no image that is known'}; programs read JPEG and PNG")


def is_image(kind):
    import pyarrow as pa
    kind = storage(kind)[0]
    if pa.types.is_struct(kind):
        return kind.get_field_index("bytes") >= 0
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def places(source, first):
    """How a message calls a row's column."""
    return lambda row, column: f"{source.path}: row {first + row}: '{column}'"
