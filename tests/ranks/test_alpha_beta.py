"""ch6/alpha_beta.py: collectives by hand, and the fit against times made of known links."""

import pytest

from common.pairs.user_error import UserError


def test_a_ring_sends_2_n_minus_1_messages_of_an_nth(alpha_beta):
    link = alpha_beta.Link(5e-6, 20e9)
    for ranks, size in ((2, 1e6), (8, 1e9), (3, 7.0)):
        expected = 2 * (ranks - 1) * (5e-6 + size / (ranks * 20e9))
        assert alpha_beta.ring("all_reduce", size, ranks, link) == pytest.approx(expected)
        for half in ("all_gather", "reduce_scatter"):
            assert alpha_beta.ring(half, size, ranks, link) == pytest.approx(expected / 2)
    assert alpha_beta.ring("all_to_all", 8e9, 8, link) == pytest.approx(7 * 5e-6 + 7e9 / 20e9)
    assert alpha_beta.ring("broadcast", 1e9, 8, link) == pytest.approx(3 * (5e-6 + 0.05))
    assert alpha_beta.ring("send_recv", 1e9, 8, link) == pytest.approx(5e-6 + 0.05)


def test_two_levels(alpha_beta, links):
    found = alpha_beta.ways("all_reduce", 16e9, 32, 8, links)  # 4 machines; between them 2e9 bytes of each rank
    inside = 14 * (1e-6 + 2e9 / 100e9)
    assert found["two-level ring"] == pytest.approx(inside + 6 * (10e-6 + 0.5e9 / 10e9))
    assert found["two-level tree"] == pytest.approx(inside + 4 * 10e-6 + 2 * 2e9 / 10e9)
    hops = 62 / 32 * (28 * 1e-6 + 4 * 10e-6)  # eight adapters carry 80 GB/s, less than the 100 within
    assert found["ring"] == pytest.approx(hops + 62 * 0.5e9 / 80e9)
    assert alpha_beta.seconds("all_reduce", 16e9, 32, 8, links) == min(found.values())
    gathered = alpha_beta.ways("all_gather", 16e9, 32, 8, links)
    assert gathered["two-level ring"] == pytest.approx(inside / 2 + 3 * (10e-6 + 0.5e9 / 10e9))
    alone = alpha_beta.ways("all_reduce", 4e9, 4, 1, links)["ring"]  # one rank on each machine: no link within
    assert alone == pytest.approx(6 * (10e-6 + 1e9 / 10e9))
    pairs = alpha_beta.seconds("all_to_all", 32e9, 32, 8, links)
    assert pairs == pytest.approx(7 * (1e-6 + 1e9 / 100e9) + 24 * (10e-6 + 1e9 / 10e9))
    assert alpha_beta.seconds("all_reduce", 1e9, 1, 1, links) == 0


def test_links_are_found_again_in_times_made_of_them(alpha_beta, known, record, tmp_path):
    path = record(tmp_path / "8.json", 8)
    for link in alpha_beta.links_of(alpha_beta.load(path)).values():
        assert (link.alpha, link.beta) == (pytest.approx(20e-6), pytest.approx(5e9))
    gpu, said = known.gpu_of("h200", 0.5, path)
    assert gpu.links.within["all_reduce"].beta == pytest.approx(5e9)
    assert gpu.links.between["send_recv"] == alpha_beta.Link(14e-6, 50e9)
    assert any(str(path) in each and "alpha 20.0 us, beta 5.00 GB/s" in each for each in said)


def test_what_is_held_out_is_predicted_and_not_fitted(alpha_beta, record, tmp_path):
    records = [alpha_beta.load(record(tmp_path / f"{ranks}.json", ranks)) for ranks in (2, 4)]
    slow = alpha_beta.load(record(tmp_path / "slow.json", 8, alpha=40e-6, beta=2.5e9))
    jobs = list(alpha_beta.held_out([*records, slow]))
    assert {(ranks, fitted) for _, ranks, fitted, *_ in jobs} == {
        (2, "other sizes"), (4, "other sizes"), (8, "other sizes"), (4, "2 ranks"), (8, "2 and 4 ranks")
    }  # fmt: skip
    for name, ranks, fitted, seen, others, is_shared in jobs:
        assert not set(seen) & set(others) and not is_shared
        ratio = 0.5 if fitted == "2 and 4 ranks" else 1.0  # links of half the speed were not foreseen
        for _, predicted, measured in alpha_beta.beside(name, seen, others, is_shared):
            assert predicted / measured == pytest.approx(ratio), (name, ranks, fitted)


def test_ranks_that_share_cores_take_turns(alpha_beta, record, tmp_path):
    records = [
        alpha_beta.load(record(tmp_path / f"{n}.json", n, alpha=n * 1e-6, beta=8e9 / n, device="cpu")) for n in (2, 4)
    ]
    jobs = [job for job in alpha_beta.held_out(records) if job[2] != "other sizes"]
    assert {is_shared for *_, is_shared in jobs} == {True, False}
    for name, _, _, *job in jobs:
        ratios = {round(predicted / measured, 6) for _, predicted, measured in alpha_beta.beside(name, *job)}
        assert ratios == ({1.0} if job[-1] else {0.5})


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"ranks": 1}, "two at least"), ({"times": {"send_recv": [[4, 0.0]]}}, "above 0"),
     ({"times": {"all_reduce": [[4, 1.0]]}}, "send_recv"), ({"times": []}, "not a record"),
     ({"times": {"send_recv": [[4, 1.0]], "gossip": [[4, 1.0]]}}, "gossip")],
)  # fmt: skip
def test_a_bad_record_is_refused(alpha_beta, record, tmp_path, changes, message):
    with pytest.raises(UserError, match=message):
        alpha_beta.load(record(tmp_path / "bad.json", **{"ranks": 2} | changes))


def test_times_without_a_bandwidth_are_refused(alpha_beta, record, tmp_path):
    falling = {"send_recv": [[4096, 4e-3], [16384, 3e-3], [65536, 1e-3], [262144, 1e-3]]}
    for times, message in ((falling, "more bytes take no more time"), ({"send_recv": [[4096, 1e-3]]}, "two sizes")):
        with pytest.raises(UserError, match=message):
            alpha_beta.links_of(alpha_beta.load(record(tmp_path / "bad.json", 2, times=times)))
    few = alpha_beta.load(record(tmp_path / "few.json", 2, times={"send_recv": [[4096, 1e-3], [8192, 2e-3]]}))
    with pytest.raises(UserError, match="2 sizes"):
        next(alpha_beta.held_out([few]))
    others = [alpha_beta.load(record(tmp_path / "x.json", 2, device=device)) for device in ("cpu", "GPU")]
    with pytest.raises(UserError, match="different backends"):
        next(alpha_beta.held_out(others))
