"""A task's state graph: what is drawn, where, and how."""
