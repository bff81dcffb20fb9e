"""What scores mean: intervals, comparisons, estimates, forecasts, studies, judgements, probes."""
