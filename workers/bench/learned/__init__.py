"""Training of learned metrics, from captions and from people's judgements: `accord`, NNEval."""
