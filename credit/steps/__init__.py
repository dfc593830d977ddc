"""Steps as integer codes: complete trajectories, nodes, batches of whole groups."""
