"""How well does each estimator's credit follow the truth, on games that know the way?"""
