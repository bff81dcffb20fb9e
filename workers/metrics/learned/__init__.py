"""The learned metric NNEval (Sharif et al. 2018): how likely a person wrote a caption, judged from
the scores that other metrics give it.
"""
