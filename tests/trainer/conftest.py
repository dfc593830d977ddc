"""One thread: tests run beside each other, and the same number of threads gives the same bits."""

import torch

torch.set_num_threads(1)
