"""What a metric rewards and what it overlooks, seen on a dataset's own references (the "curious
case" of language generation metrics, Caglayan, Madhyastha and Specia 2020).
"""
