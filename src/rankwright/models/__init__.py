"""Models: a scorer with its scaling, measure, names and history, as JSON."""
