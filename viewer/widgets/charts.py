"""Charts in colours that can be read on the page.

A chart is a specification of Vega-Lite. Altair would check each part of it against a schema, which
takes longer than all queries of a page.
"""

from typing import Any, TypeAlias

import streamlit as st

from graphcredit.viewer.widgets.colours import ink

Spec: TypeAlias = dict[str, Any]


def show_chart(chart: Spec, **options: Any) -> Any:
    """Show a chart, as `st.vega_lite_chart` does; its own axes are fainter than WCAG's 4.5 to 1."""
    colour = {"color": ink(st.context.theme.type)}
    words = {"labelColor": colour["color"], "titleColor": colour["color"]}
    config = {"axis": words, "legend": words, "title": colour, "text": colour}
    return st.vega_lite_chart(chart | {"config": config}, **options)


def field(column: str, **options: Any) -> Spec:
    """Return the encoding of a column, which is followed by `:N`, `:O` or `:Q` for its kind."""
    name, _, kind = column.rpartition(":")
    return {"field": name, "type": _KINDS[kind], **options}


_KINDS = {"N": "nominal", "O": "ordinal", "Q": "quantitative"}
