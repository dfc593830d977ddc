"""The names of a bundle's files; a task's own name may be no name for a file."""


def folder(iteration: int) -> str:
    """Return the folder of an iteration, beside the index."""
    return f"iteration-{iteration:06d}"


def task_file(number: int) -> str:
    """Return the file of a task, in the folder of its iteration."""
    return f"task-{number:05d}.html"


def trajectory_file(task: int, number: int) -> str:
    """Return the file of a trajectory, in the folder of its iteration.

    Args:
        task: The number of its task.
        number: Its own number within the task.
    """
    return f"task-{task:05d}-{number:04d}.html"
