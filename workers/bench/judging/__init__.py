"""Metrics judged by people: do their scores follow ratings, and prefer what people prefer?"""
