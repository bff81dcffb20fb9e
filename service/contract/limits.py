"""How much a request's body may hold, and how long texts are in bodies and files. More is refused
before it costs time or memory.
"""

BODY_BYTES = 32 << 20
VALUES = 500_000  # in a body, counted as commas, objects and lists: a caption has three
KEYS = 1000  # of one object
PROBLEMS = 20  # named in one refusal

CAPTIONS = 150_000
CAPTION = 10_000  # characters
IMAGE = 500  # characters of a name
REFERENCES = 100  # of one image
RATINGS = 1000  # of one caption

METRICS = 1000  # there are fewer
FEATURES = 100
CAPTIONERS = 100
GATES = 50
LABELS = 50
WORDS = 1000  # that a probe replaces
WORD = 100  # characters
