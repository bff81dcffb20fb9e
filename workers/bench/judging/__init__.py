"""Agreement of metrics with people's judgements: with ratings, and with preferences in pairs."""
