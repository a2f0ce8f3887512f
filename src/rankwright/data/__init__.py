"""Everything that becomes queries: files, arrays, TREC runs, folds, made-up data."""
