"""Client of Prescore, the evaluator that a captioning team shares."""
