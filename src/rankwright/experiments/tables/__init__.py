"""Make the tables of a trial that the report shows: curves, histories, weights, profiles, bounds."""
