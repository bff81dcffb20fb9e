"""Limits of connections, requests and files. More is refused before it costs.

`LimitsOut` tells every limit to those who ask: `GET /v1/limits`, and a table in the guide.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

HEADER_BYTES = 64 << 10  # of a request: its line, its headers, what is around its body
CONNECTIONS = 1000  # at once, to one process of the API
PATIENCE = 10.0  # seconds that a connection may wait for its request, and a header may take
OPEN_SECONDS = 5.0  # that the body of a request that needs no key may take
IN_PROGRESS = 200  # requests of one key at once in one process of the API; of a team twice as many
SLOWEST = 1000  # bytes a second of a request's body or of an answer, else its connection is closed

BODY_BYTES = 32 << 20
VALUES = 500_000  # in a body, counted as commas, objects and lists: a caption has three
KEYS = 1000  # of one object
PROBLEMS = 20  # named in one refusal

CAPTIONS = 150_000
CAPTION = 10_000  # characters
IMAGE = 500  # characters of a name
TOKENS = 2000  # of one caption: words and single signs; the longest descriptions have hundreds
REFERENCES = 100  # of one image: COCO has 5, PASCAL-50S 50, the largest sets have 40 to 100
RATINGS = 1000  # of one caption
MATCHES = 100_000  # 500 words with five references as long have 30,000; METEOR takes up to 7 s

PART_SECONDS = 15.0  # of a search: a beam of 80 and 1,000 words, one image, a usual model
METRICS = 1000  # there are fewer
FEATURES = 100
CAPTIONERS = 100
DATASETS = 20  # beside the first, from which one metric learns
GATES = 50
LABELS = 50
NOTE = 2000  # characters of what people write about a run
WORDS = 1000  # that a probe replaces
WORD = 100  # characters

COLUMN_TOKENS = 10_000_000  # of a file of columns; COCO's training split has 5 million
TOP_WORDS = 20  # kept of each token
UPLOAD_BYTES = 50_000_000_000  # of a checkpoint, a dataset or a file of columns
UNFINISHED = 100  # uploads of a team that go on after a cut
UNFINISHED_BYTES = 500_000_000_000  # of all of them together: ten of the largest
CONVERSIONS = 100  # checkpoints of a team that wait to be verified
UNFINISHED_SECONDS = 24 * 3600  # since bytes came
IMAGES = 4_000_000  # of a dataset: COCO has 330,000, Conceptual Captions 3.3 million
SPLITS = 1000  # of a dataset: published sets have 3 to 10, strata and folds of one some dozens
MEMBERS = 500_000  # files of a dataset's tar: all of COCO; larger sets bring features alone
PACKAGE_FILES = 1000  # of a model that is several files; the largest are shards of weights
PLACES = 1024  # of an image, in a grid or as regions; those in use have 36 to 576
PLACE_VALUES = 1 << 21  # of all places of an image; 36 of 2,048 have 74,000, 1,024 of 2,048 these
LINE_BYTES = 1_000_000  # of one image in captions.jsonl
PICTURE_BYTES = 50_000_000  # of one in images/; a camera's have 3 to 20 million
PIXELS = 100_000_000  # of one; a camera's have 12 to 60 million
JUDGING_SECONDS = 600  # for a dataset; a million images take 20 to 60
WEBHOOKS = 20  # of a team
DELIVERIES = 1000  # of a team's webhooks, that have not arrived
JUDGING_BYTES = 2 << 30  # of memory meanwhile; a million images take a tenth of it


def _limit(value: float, description: str) -> Any:
    return Field(default=value, description=description)


class LimitsOut(BaseModel):
    """Limits of requests, files and connections, unless a description says otherwise."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    header_bytes: int = _limit(HEADER_BYTES, "Bytes of a request's line and headers, about.")
    connections: int = _limit(
        CONNECTIONS,
        "Connections to one process of the API at the same time. Where there are more, "
        "the one that has been without a request for longest is closed, else the newest of the "
        "address that has most of them.",
    )
    patience: float = _limit(
        PATIENCE,
        "Seconds that a new connection may be without a request, and that a header may take.",
    )
    slowest: int = _limit(
        SLOWEST,
        "Bytes a second that a body must arrive with, and that an answer must be taken "
        "with, at least.",
    )
    open_seconds: float = _limit(
        OPEN_SECONDS,
        "Seconds that the body of a request that needs no key may take; half as many where there "
        "are as many connections as there may be.",
    )
    in_progress: int = _limit(
        IN_PROGRESS,
        "Requests of one key at the same time, waiting polls and streams among them, to one "
        "process of the API; twice as many of a team.",
    )
    body_bytes: int = _limit(
        BODY_BYTES, "Bytes of a JSON body, and of a file of captions that is inspected."
    )
    values: int = _limit(
        VALUES, "Values in a JSON body, counted as commas, objects and lists: a caption has three."
    )
    keys: int = _limit(KEYS, "Keys of one JSON object.")
    problems: int = _limit(PROBLEMS, "Wrong places that one refusal names.")
    captions: int = _limit(CAPTIONS, "Captions in one request.")
    caption: int = _limit(CAPTION, "Characters of a caption.")
    image: int = _limit(IMAGE, "Characters of an image's name.")
    tokens: int = _limit(TOKENS, "Words and single signs of a caption.")
    references: int = _limit(REFERENCES, "References of an image, or of one rated caption.")
    ratings: int = _limit(RATINGS, "Ratings of one rated caption.")
    matches: int = _limit(
        MATCHES,
        "Pairs of equal words that a caption and its references have; METEOR fails for "
        "captions with more.",
    )
    part_seconds: float = _limit(
        PART_SECONDS,
        "Seconds that a part of a search for captions may take, as estimated from "
        "beam, words, images and the model's size and vocabulary. There are at most 500 parts. "
        "Where beam times words is at most 1,000, a quarter counts, since captions end early.",
    )
    metrics: int = _limit(METRICS, "Metrics that one request names.")
    features: int = _limit(FEATURES, "Features of a learned metric.")
    captioners: int = _limit(CAPTIONERS, "Captioners from which a learned metric learns.")
    datasets: int = _limit(DATASETS, "Further splits from which a learned metric learns.")
    gates: int = _limit(GATES, "Gates of an evaluation.")
    labels: int = _limit(LABELS, "Labels of a run.")
    note: int = _limit(NOTE, "Characters of a run's note.")
    words: int = _limit(WORDS, "Words that a probe replaces.")
    word: int = _limit(WORD, "Characters of such a word.")
    column_tokens: int = _limit(COLUMN_TOKENS, "Tokens of a file of columns that somebody brings.")
    top_words: int = _limit(TOP_WORDS, "Most probable words that are kept of each token.")
    upload_bytes: int = _limit(
        UPLOAD_BYTES, "Bytes of a checkpoint, of a dataset's tar, or of a file of columns."
    )
    unfinished: int = _limit(UNFINISHED, "Uploads of a team that have begun and not ended.")
    unfinished_bytes: int = _limit(
        UNFINISHED_BYTES, "Bytes of all of them together, as many as were announced."
    )
    conversions: int = _limit(
        CONVERSIONS, "Checkpoints that a team has sent and that are not converted or verified yet."
    )
    unfinished_seconds: int = _limit(
        UNFINISHED_SECONDS,
        "Seconds after which such an upload is deleted if no bytes came; after seven "
        "times as many it is deleted in any case.",
    )
    images: int = _limit(IMAGES, "Images of a dataset.")
    splits: int = _limit(SPLITS, "Splits of a dataset.")
    members: int = _limit(MEMBERS, "Files of a dataset's tar.")
    package_files: int = _limit(PACKAGE_FILES, "Files of a model that comes as a tar or a zip.")
    places: int = _limit(PLACES, "Places of an image's features: of a grid, or regions.")
    place_values: int = _limit(PLACE_VALUES, "Values of all places of an image's features.")
    line_bytes: int = _limit(LINE_BYTES, "Bytes of one line, which is one image, of a dataset.")
    picture_bytes: int = _limit(PICTURE_BYTES, "Bytes of one picture in a dataset's images/.")
    pixels: int = _limit(PIXELS, "Pixels of one such picture.")
    webhooks: int = _limit(WEBHOOKS, "Webhooks of a team.")
    deliveries: int = _limit(
        DELIVERIES, "Messages to a team's webhooks that have not arrived; more are lost."
    )
    judging_seconds: float = _limit(
        JUDGING_SECONDS, "Seconds that the check of an uploaded file may take."
    )
    judging_bytes: int = _limit(JUDGING_BYTES, "Memory that this check may take.")
