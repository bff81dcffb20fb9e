"""A process that starts the sandbox's children for workers, where it has neither their network nor
their secrets nor their home.
"""
