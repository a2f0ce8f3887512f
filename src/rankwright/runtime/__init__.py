"""Run work: backends run the parts of one computation, workers run whole tasks."""
