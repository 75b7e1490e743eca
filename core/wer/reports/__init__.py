"""What a run found, from its store alone: statistics, tables, lineage, verdicts judged again."""
