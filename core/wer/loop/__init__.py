"""The refinement loop: seed, train, refine, merge, measure, and the scheduler that runs their rollouts."""
