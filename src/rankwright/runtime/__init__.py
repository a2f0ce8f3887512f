"""Where work runs: backends for the parts of one computation, workers for whole tasks."""
