"""The file under a run's store."""
