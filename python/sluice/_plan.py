# SPDX-License-Identifier: Apache-2.0
"""What a trainer tells of its memory, as notebooks show it."""
from __future__ import annotations

import html
from typing import Any, Dict


class Plan(Dict[str, Any]):
    """The memory plan: bytes, inputs, outputs, and what is in memory in which steps. Notebooks show a table."""

    def __repr__(self) -> str:
        return f"Plan of {self['model']}: {self['device_bytes']:,} bytes and {self['host_bytes']:,} of host memory, {self['predicted_seconds']:.3g} s a step predicted"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("tensor", "node", "action", "bytes", "steps"))
        rows = "".join(f"<tr><td>{html.escape(row['name'])}<td>{html.escape(row['node'])}<td>{row['action']}<td style='text-align:right'>{row['bytes']:,}"
                       f"<td>{row['first']}-{row['last']}</tr>" for row in self["tensors"])
        return (f"<p>{html.escape(self['model'])}: {self['device_bytes']:,} bytes and {self['host_bytes']:,} of host memory, "
                f"{self['predicted_seconds']:.3g} s a step predicted</p><table><tr>{head}</tr>{rows}</table>")


class Report:
    """The compiler's page about a plan, `text`, which notebooks show."""

    def __init__(self, text: str):
        self.text = text

    def _repr_html_(self) -> str:
        if not self.text.startswith("<!doctype html>"):
            return f"<pre>{html.escape(self.text)}</pre>"
        return f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(self.text)}" style="width:100%;height:48em;border:0"></iframe>'
