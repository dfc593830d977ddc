"""The drawing of a task's state graph: data, layout, and output in the browser, SVG and HTML."""
