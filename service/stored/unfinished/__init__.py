"""Uploads that go on after a cut: what the record knows of them, whose turn it is to write, what
clients send to the object store themselves, what is stored when all bytes are there, and when they
end unfinished.
"""
