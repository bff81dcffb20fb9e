"""What the interface's description says of the routes that all kinds of runs have."""

from dataclasses import dataclass

from service.runs.base import AnyKind


@dataclass(frozen=True)
class Words:
    """Names of operations, summaries, descriptions; `ended`, `is_as` and `over` have their verb."""

    called: str  # submit_…, get_…, cancel_…
    all_called: str  # list_…
    submit: str
    look: str
    cancel: str
    every: str
    about: str
    taken_in: str = "Taken in: poll for the scores."
    ended: str = "it has ended"
    polled: str = "Polled as an evaluation is."
    is_as: str = "It is"
    canceled: str = "Ends what nobody else waits for."
    over: str = "It has ended."
    filtered: str = "The latest first, filtered by dataset and status."


_WORDS = {
    "evaluation": Words(
        called="evaluation",
        all_called="evaluations",
        submit="Submit an evaluation",
        look="Look at an evaluation",
        cancel="Cancel an evaluation",
        every="List evaluations",
        about="A checkpoint (uploaded before) or captions, to be scored on a split of a dataset. "
        "`Prefer: wait=N` holds for the pre-gen scores, or for the end where there are none. What "
        "has been computed once is not computed again.",
        taken_in="Taken in: poll or listen for its scores.",
        ended="what it waits for is there",
        polled="Its works and scores by now: 200 whatever became of it, for a run that failed is "
        "no error of HTTP. `Prefer: wait=N` with `If-None-Match` is the long poll: it answers as "
        "soon as anything has changed, or 304 after N seconds.",
        canceled="Ends what nobody else waits for. Canceling what has ended changes nothing.",
        filtered="The latest first, filtered by dataset, status and labels.",
    ),
    "comparison": Words(
        called="comparison",
        all_called="comparisons",
        submit="Compare two evaluations",
        look="Look at a comparison",
        cancel="Cancel a comparison",
        every="List comparisons",
        about="Of the same split of the same version, by metrics that were computed alike; else "
        "it is refused, and the field that differs is named. A comparison is computed once.",
    ),
    "probes": Words(
        called="probes",
        all_called="probes",
        submit="Probe a dataset",
        look="Look at probes",
        cancel="Cancel probes",
        every="List probes",
        about="People against people and against a system, frequent and rare words made unknown, "
        "words swapped or replaced at random, one sentence for all images. A table is computed "
        "once.",
        taken_in="Taken in: poll for the tables.",
        ended="they have ended",
        is_as="They are",
        over="They have ended.",
    ),
    "training": Words(
        called="training",
        all_called="trainings",
        submit="Train a metric",
        look="Look at a metric's training",
        cancel="Cancel a metric's training",
        every="List trainings of metrics",
        about="How likely a person wrote a caption (NNEval), learnt from other metrics' scores of "
        "people's captions and of three captioners' or more. No photo is trained on and tested "
        "with, under whatever name. Evaluations then ask for it by its `metric`; the same "
        "training is done once.",
        taken_in="Taken in: poll for the model.",
        canceled="Ends it, unless another one waits for the same.",
    ),
    "study": Words(
        called="study",
        all_called="studies",
        submit="Study what pre-gen scores say of post-gen ones",
        look="Look at a correlation study",
        cancel="Cancel a correlation study",
        every="List correlation studies",
        about="The study of Tanti, Gatt and Muscat (2018) on the split's finished evaluations of "
        "checkpoints, the 200 latest. Images are sorted by a model's CIDEr-D and cut into 1 to 5 "
        "strata; over these, R² says which *images* are described well. The rank agreement over "
        "the whole split beside it says whether the metric knows which *model* is better. The "
        "same study is made once.",
        taken_in="Taken in: poll for the study.",
    ),
}


def words_of(kind: AnyKind) -> Words:
    """Plain ones for a kind that has none of its own."""
    return _WORDS.get(kind.name) or Words(
        called=kind.name,
        all_called=f"{kind.name}s",
        submit=f"Submit a {kind.noun}",
        look=f"Look at a {kind.noun}",
        cancel=f"Cancel a {kind.noun}",
        every=f"List every {kind.noun}",
        about=f"A {kind.noun} is computed once.",
    )
