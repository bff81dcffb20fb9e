"""Research tools on the engine: judgements, probes, studies, training of learned metrics."""
