from workers.jobs import bench


def test_progress_goes_on_from_stage_to_stage_and_never_back():
    """Features are measured family by family, and the training may end early."""
    told = []
    report = bench._staged(lambda *at: told.append(at), stages=3)
    for what, done, total in (
        *(("features", 0, 10), ("features", 10, 10), ("features", 5, 10)),
        *(("training", 0, 500), ("training", 250, 500)),
        *(("without cider_d", 0, 0), ("without cider_d", 4, 4)),
    ):
        report(what, done, total)
    assert [done for done, _ in told] == [0, 1000, 1000, 1000, 1500, 2000, 3000]
    assert {total for _, total in told} == {3000}
