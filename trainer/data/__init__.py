"""The input of a training: step columns, credit columns, and the filters of steps."""
