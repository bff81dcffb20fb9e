"""prescore leaderboard, correlations, health, probes, learned: what is known of a split."""
