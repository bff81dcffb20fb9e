import pytest

from service.contract.errors import UnknownMetric
from service.contract.plan import metric_requests

ONE, OTHER = (f"sha256:{'0123456789abc':{end}<64}" for end in "de")
THIRD = f"sha256:{'f' * 64}"


def _of(*digests):
    return [("nneval", each) for each in digests]


def _refused(name, known):
    with pytest.raises(UnknownMetric) as caught:
        metric_requests.resolve_models(["bleu", name], known, "/postgen")
    assert caught.value.pointer == "/postgen/1"
    return caught.value.detail


@pytest.mark.parametrize("digits", ["f" * 12, "f" * 30, "f" * 64, THIRD])
def test_a_model_is_found_by_its_first_digits_and_shown_by_twelve(digits):
    names, models = metric_requests.resolve_models(
        ["bleu", f"nneval@{digits}", "nneval"], _of(ONE, THIRD)
    )
    assert names == ["bleu", f"nneval@{'f' * 12}", "nneval"]
    assert models == {f"nneval@{'f' * 12}": THIRD}


def test_digits_that_begin_two_are_refused_until_they_say_more():
    told = _refused("nneval@0123456789abc", _of(THIRD, OTHER, ONE))
    assert f"{ONE}, {OTHER}: give more digits" in told
    assert metric_requests.resolve_models(["nneval@0123456789abcd"], _of(ONE, OTHER))[1] == {
        "nneval@0123456789ab": ONE
    }


def test_a_model_of_one_metric_is_none_of_another():
    known = [("nneval", ONE), ("accord", THIRD)]
    names = [f"accord@{'f' * 12}", f"nneval@{ONE}"]
    assert metric_requests.resolve_models(names, known) == (
        [f"accord@{'f' * 12}", "nneval@0123456789ab"],
        {f"accord@{'f' * 12}": THIRD, "nneval@0123456789ab": ONE},
    )
    told = _refused(f"nneval@{'f' * 12}", known)
    assert told.endswith(f"there are: accord@{'f' * 12}, nneval@0123456789ab")


def test_digits_of_no_model_are_refused_with_those_there_are():
    told = _refused("nneval@" + "0" * 12, _of(THIRD))
    assert told.endswith(f"there are: nneval@{'f' * 12}")
    assert _refused("nneval@" + "0" * 12, []).endswith("there are: none")
