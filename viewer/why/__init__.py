"""Which decisions mattered, and one sentence for each: the counterfactual that its group shows."""
