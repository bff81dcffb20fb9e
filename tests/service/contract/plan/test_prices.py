"""Prices of tasks beside what was measured, and how tasks are cut by them."""

import pytest

from helpers.estimated_plans import checkpoint_plan
from service.contract.metrics import families
from service.contract.plan import planning, prices, tasks
from service.contract.plan.postgen import PostgenRequest
from service.contract.plan.prices import TaskSizes
from service.contract.plan.tasks import KINDS, Task

# Seconds of a core for a block of captions none of which ends early: LSTM, par, one thread, as
# measured on a shared machine. Words that a model knows, its size, beam, longest caption.
MEASURED = [
    ((500, 32), (3, 50), 0.14),
    ((500, 32), (100, 1000), 3.24),
    ((10_000, 512), (1, 50), 1.17),
    ((10_000, 512), (3, 50), 3.13),
    ((10_000, 512), (10, 50), 3.10),
    ((10_000, 512), (3, 1000), 4.63),
    ((10_000, 512), (100, 1000), 19.96),
    ((30_000, 512), (3, 50), 7.81),
    ((30_000, 512), (100, 1000), 47.68),
    ((10_000, 1024), (3, 50), 6.49),
    ((10_000, 1024), (100, 1000), 35.69),
]
# Seconds of a core for the columns of an image with five references, and for its search with a beam
# of 3 and 12 words: size 512, 10,000 words, places of size 2,048. Parameters are those that are
# multiplied: without the embedding.
OF_PLACES = [
    ("soft_attention", 16_100_000, 49, 0.0159, 0.0088),
    ("transformer", 18_800_000, 49, 0.0129, 0.0103),
    ("soft_attention", 16_100_000, 196, 0.0346, 0.0195),
    ("adaptive_attention", 12_000_000, 196, 0.0422, 0.0201),
    ("transformer", 18_800_000, 196, 0.0198, 0.0200),
]
# Seconds of a core for METEOR, Java warm, of captions of systems and people on Flickr8k, Flickr30k
# and COCO test, in one run with BLEU (.02 to .06 s for 1,000).
METEOR = [(1000, 1.08), (1000, 1.16), (1000, 1.64), (1000, 2.16), (5000, 3.45), (5000, 4.42)]
# Seconds of a caption with five references, by the words of each.
LONG_METEOR = [(10, 0.00156), (100, 0.0171), (500, 0.305)]
MODELS = [(500, 32), (10_000, 512), (30_000, 512), (50_000, 2048)]


def _plan(sizes):
    wanted = PostgenRequest(["bleu", "meteor"], "ptb")
    return checkpoint_plan(wanted, sizes.images, sizes=sizes)


@pytest.mark.parametrize(("model", "asked", "seconds"), MEASURED)
def test_the_price_of_a_search_is_within_half_of_what_it_takes(model, asked, seconds):
    vocabulary, size = model
    block = tasks.size_decoding_block(*asked)
    price = prices.price_search(TaskSizes(size=size, vocabulary=vocabulary), block, block, *asked)
    assert price == pytest.approx(seconds, rel=0.5) or abs(price - seconds) < 1


@pytest.mark.parametrize(("architecture", "parameters", "places", "columns", "search"), OF_PLACES)
def test_looking_at_places_costs_up_to_three_times_what_it_takes_on_a_quiet_machine(
    architecture, parameters, places, columns, search
):
    size = prices.estimate_model_size(parameters, 10_000)
    sizes = TaskSizes(size=size, vocabulary=10_000, places=places, place_size=2048)
    found = prices.price_search(sizes, 64, 64, 3, 12) / 64
    assert columns < sizes.columns < 3.2 * columns
    assert search < found < 3.2 * search


@pytest.mark.parametrize(("images", "seconds"), METEOR)
def test_the_price_of_meteor_is_within_a_factor_of_two_of_what_it_takes(images, seconds):
    """Else tasks that are no short ones begin as such, and have to begin again."""
    price = prices.price_task(Task("meteor", {}, {}), TaskSizes(images))
    assert seconds / 2 < price < 2 * seconds


@pytest.mark.parametrize(("words", "seconds"), LONG_METEOR)
def test_the_price_of_meteor_grows_with_the_words_of_captions_and_references(words, seconds):
    """Else 300 long captions are performed beside others, as if they were short."""
    sizes = TaskSizes(1000, reference_words=words, caption_words=words)
    price = prices.price_task(Task("meteor", {}, {}), sizes)
    assert 500 * seconds < price < 2000 * seconds


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("images", [1100, 40_000])
def test_no_part_takes_long_unless_it_is_one_block_or_there_are_500(model, images):
    """T65."""
    vocabulary, size = model
    sizes = TaskSizes(images, 5.0, size, vocabulary)
    for name, block in (("columns", tasks.BLOCK_IMAGES), ("captions", 128)):
        whole = _plan(sizes).named[name]
        first = whole.parts[0]
        start, stop = first.parameters["images"]
        short = prices.price_task(first, sizes) <= prices.PART_SECONDS + 0.1
        assert short or stop - start == block or len(whole.parts) > tasks.MAX_PARTS / 2


def test_a_usual_model_is_cut_as_ever_and_no_size_changes_a_wholes_key():
    images = 5000
    plans = [_plan(TaskSizes(images, 5.0, size, vocabulary)) for vocabulary, size in MODELS]
    small, usual, *_, large = plans
    spans = [part.parameters["images"] for part in usual.named["columns"].parts]
    assert spans[0] == [0, planning.COLUMNS_IMAGES]
    assert usual.named["captions"].parts[0].parameters["images"] == [0, planning.CAPTIONS_IMAGES]
    assert small.everything() == usual.everything()
    assert len(large.named["columns"].parts) > len(usual.named["columns"].parts)
    for plan in plans:
        keys = {name: task.key for name, task in plan.named.items()}
        assert keys == {name: task.key for name, task in usual.named.items()}


def test_every_kind_has_a_price_and_what_takes_long_has_a_higher_one():
    sizes = TaskSizes(1000)
    parameters = {"decoding": {"beam": 3, "max_words": 50}}
    found = {kind: prices.price_task(Task(kind, {}, parameters), sizes) for kind in KINDS}
    assert all(price > 0 for price in found.values())
    assert found["bleu"] < found["meteor"] < found["bertscore"] < found["tuples"]
    assert found["prefix"] < found["columns"] < found["captions"]
    assert families.FAMILIES.keys() < found.keys()


def test_faster_workers_make_models_cheaper_and_metrics_not():
    usual, fast = TaskSizes(5000, size=2048), TaskSizes(5000, size=2048, speed=20)
    asked = tasks.BLOCK_IMAGES, tasks.BLOCK_IMAGES, 3, 50
    assert prices.price_search(fast, *asked) == pytest.approx(
        prices.price_search(usual, *asked) / 20
    )
    for kind in ("prefix", "columns"):
        of = [prices.price_task(Task(kind, {}, {}), sizes) - 0.05 for sizes in (usual, fast)]
        assert of[1] == pytest.approx(of[0] / 20)
    assert prices.price_task(Task("meteor", {}, {}), fast) == prices.price_task(
        Task("meteor", {}, {}), usual
    )
    assert len(_plan(fast).named["columns"].parts) < len(_plan(usual).named["columns"].parts)


def test_a_picture_is_priced_once_for_all_its_words_and_less_on_faster_workers():
    seen = TaskSizes(5000, picture_products=3 * 10**11)
    faster = TaskSizes(5000, picture_products=3 * 10**11, speed=4)
    plain = TaskSizes(5000)
    decoding = {"decoding": {"beam": 3, "max_words": 50}}
    for kind in ("columns", "captions"):
        price, usual, fast = (
            prices.price_task(Task(kind, {}, {**decoding, "images": [0, 7]}), sizes)
            for sizes in (seen, plain, faster)
        )
        assert price - usual == pytest.approx(7 * 2.0)
        assert fast - 0.05 == pytest.approx((price - 0.05) / 4)
    assert prices.price_search(seen, 8, 8, 3, 50) - prices.price_search(
        plain, 8, 8, 3, 50
    ) == pytest.approx(16)
    assert len(_plan(seen).named["columns"].parts) > len(_plan(plain).named["columns"].parts)


def test_a_price_is_of_the_images_of_a_part_and_what_joins_them_costs_little():
    sizes = TaskSizes(5000)
    priced = {task.key: task for task in prices.price_tasks(_plan(sizes).everything(), sizes)}
    whole = _plan(sizes).named["captions"]
    parts = [priced[part.key].price for part in whole.parts]
    assert priced[whole.key].price < min(parts) / 10


def test_small_pictures_are_priced_by_their_number_and_a_block_takes_less_than_a_part():
    block = planning.plan_thumbnails(
        "sha256:" + "0" * 64, "test", range(planning.THUMBNAILS_IMAGES)
    )
    few = planning.plan_thumbnails("sha256:" + "0" * 64, "test", [3, 9])
    huge = prices.TaskSizes(images=1_000_000)
    assert prices.price_task(few, huge) < 0.3
    assert prices.price_task(few, huge) * 10 < prices.price_task(block, huge) < prices.PART_SECONDS
