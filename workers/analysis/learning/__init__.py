"""Models of `accord` learned from a team's own data: from captions alone, or from judgements."""
