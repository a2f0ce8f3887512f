"""The data of a ranking problem: judged queries from arrays, files, TREC runs, folds or a generator."""
