# SPDX-License-Identifier: Apache-2.0
"""Runs the cells of a notebook one after the other, as Jupyter does, without it: the last line of a cell is its value. What they make has to be of the kinds that
the file holds, and as good as its text says.

    notebook.py FILE.ipynb     PYTHONPATH has the package, the working folder gets what the notebook writes
"""
import ast
import contextlib
import io
import json
import re
import sys
import warnings


def run(source: str, names: dict) -> tuple[object, str]:
    """The value of the last expression, if the cell ends in one, and what was printed."""
    body, said, value = ast.parse(source).body, io.StringIO(), None
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(said):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        if last:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return value, said.getvalue()


def without_numbers(text: str) -> str:
    return re.sub(r"\d[\d.]*(e[+-]?\d+)?", "#", text)


def main() -> None:
    import matplotlib
    matplotlib.use("agg")
    with open(sys.argv[1]) as file:
        notebook = json.load(file)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5) and len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    names, kinds = {}, set()
    with warnings.catch_warnings(record=True) as warned:
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            value, said = run("".join(cell["source"]), names)
            written = "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")
            assert without_numbers(said) == without_numbers(written), (said, written)
            held = {kind for output in cell["outputs"] for kind in output.get("data", {})}
            assert "text/html" not in held or "<table>" in value._repr_html_()
            assert "image/png" not in held or len(names["figure"].axes[0].lines) == 2
            kinds |= held
    exporter = [str(one.message) for one in warned if "ONNX" in str(one.message)]
    assert not exporter, exporter
    assert {"text/html", "image/png"} <= kinds, kinds
    accuracy = names["result"]["accuracy"]
    assert accuracy > 0.95 and names["steps"][-40:].mean() < names["steps"][:40].mean() / 10, accuracy
    print(f"{len(notebook['cells'])} cells; accuracy {accuracy:.4f}")


main()
