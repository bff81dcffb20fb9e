"""Summaries and descriptions, in openapi.json, of the routes of each kind of run."""

from dataclasses import dataclass

from service.runs.run_store import AnyRunKind


@dataclass(frozen=True)
class RunDescriptions:
    """Names, summaries and descriptions of a kind's routes."""

    one: str  # submit_…, get_…, cancel_…
    many: str  # list_…
    submit: str
    get: str
    cancel: str
    every: str
    about: str
    submitted: str = "Submitted: poll for the scores."
    ended: str = "it has ended"  # after "`Prefer: wait=N` was sent, and"
    polled: str = (
        "The run as it is now. `Prefer: wait=N` waits for its end, and with `If-None-Match` for "
        "any change."
    )
    it_is: str = "It is"  # before "unchanged"
    canceled: str = "Stops tasks that no other run needs."
    over: str = "It has ended."
    filtered: str = "The latest first, filtered by dataset and status."


_DESCRIPTIONS = {
    "evaluation": RunDescriptions(
        one="evaluation",
        many="evaluations",
        submit="Submit an evaluation",
        get="Get an evaluation",
        cancel="Cancel an evaluation",
        every="List evaluations",
        about="Score a checkpoint (uploaded before), captions, or columns (uploaded before) with "
        "captions or without, on a split of a dataset. "
        "`Prefer: wait=N` waits for the pre-gen scores, or for the end where there are none. No "
        "score is computed twice.",
        submitted="Submitted: poll or listen for its scores.",
        ended="the pre-gen scores, or the end, came in time",
        polled="Its tasks and scores so far; always 200, since a failed run is no HTTP error. "
        "`Prefer: wait=N` waits for its end, at most N seconds; with `If-None-Match` it is the "
        "long poll: it answers as soon as anything has changed, or 304 after N seconds.",
        canceled="Stops tasks that no other run needs. A run that has ended does not change.",
        filtered="The latest first, filtered by dataset, status and labels.",
    ),
    "comparison": RunDescriptions(
        one="comparison",
        many="comparisons",
        submit="Compare two evaluations",
        get="Get a comparison",
        cancel="Cancel a comparison",
        every="List comparisons",
        about="Both must be on the same split with the same captions, whatever the features, and "
        "with scores computed in the same way; else the request is refused, and the error names "
        "the field that differs. The same comparison is computed once.",
    ),
    "probes": RunDescriptions(
        one="probes",
        many="probes",
        submit="Probe a dataset",
        get="Get probes",
        cancel="Cancel probes",
        every="List probes",
        about="Score captions of known quality with the metrics: people's captions against other "
        "people's and a system's, captions with frequent or rare words made unknown, with words "
        "swapped or replaced at random, and one sentence for all images. The same table is "
        "computed once.",
        submitted="Submitted: poll for the tables.",
        ended="they have ended",
        it_is="They are",
        over="They have ended.",
    ),
    "training": RunDescriptions(
        one="training",
        many="trainings",
        submit="Train a metric",
        get="Get a metric's training",
        cancel="Cancel a metric's training",
        every="List trainings of metrics",
        about="Train NNEval (how likely a person wrote a caption) on other metrics' scores of "
        "people's captions and of three or more captioners' captions. No photo is in both "
        "training and test data, even under another name. Evaluations then request it by its "
        "`metric`; the same training is done once.",
        submitted="Submitted: poll for the model.",
        canceled="Stops the training, unless another run needs it.",
    ),
    "study": RunDescriptions(
        one="study",
        many="studies",
        submit="Study correlations of pre-gen with post-gen scores",
        get="Get a correlation study",
        cancel="Cancel a correlation study",
        every="List correlation studies",
        about="The study of Tanti, Gatt and Muscat (2018) on the split's finished evaluations of "
        "checkpoints, the 200 latest. Images are sorted by a model's CIDEr-D and cut into 1 to 5 "
        "strata; R² over the strata says which *images* are described well. The rank agreement "
        "over the whole split says whether the metric knows which *model* is better. The same "
        "study is computed once.",
        submitted="Submitted: poll for the study.",
    ),
}


def find_descriptions(kind: AnyRunKind) -> RunDescriptions:
    """The words of a kind of run; general ones for a kind without its own."""
    return _DESCRIPTIONS.get(kind.name) or RunDescriptions(
        one=kind.name,
        many=f"{kind.name}s",
        submit=f"Submit a {kind.noun}",
        get=f"Get a {kind.noun}",
        cancel=f"Cancel a {kind.noun}",
        every=f"List every {kind.noun}",
        about=f"A {kind.noun} is computed once.",
    )
