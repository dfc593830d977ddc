"""Does each estimator's credit follow true progress, in games that know the way?"""
