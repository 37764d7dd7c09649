"""Environments of Gymnasium."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from waiting import LIMIT_S

import fairwave.gym
from fairwave.gym import SharedLink, SharedLinks


# A range without an upper end, and actions that are not scaled, are advice and not rules.
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("rival", ["cubic", "vegas", None])
def test_shared_link__passes_the_checker(rival: str | None) -> None:
    env = gymnasium.make("fairwave/SharedLink-v0", rival=rival)
    check_env(env.unwrapped, skip_render_check=True)


def test_shared_links__are_single_links_side_by_side() -> None:
    envs = gymnasium.make_vec("fairwave/SharedLink-v0", num_envs=3, rounds=20)
    assert isinstance(envs, SharedLinks)
    seen, _ = envs.reset(seed=5)
    singles = [SharedLink(rounds=20) for _ in range(3)]
    assert (seen == [single.reset(seed=5 + index)[0] for index, single in enumerate(singles)]).all()
    random = np.random.default_rng(0)
    for step in range(20):
        actions = random.uniform(-1, 1, (3, 1)).astype(np.float32)
        seen, rewards, ended, truncated, infos = envs.step(actions)
        for index, single in enumerate(singles):
            alone, reward, _, is_last, info = single.step(actions[index])
            assert (seen[index] == alone).all()
            assert rewards[index] == reward
            assert truncated[index] == is_last == (step == 19)
            assert infos["rate_bps"][index] == info["rate_bps"]
        assert not ended.any()


def test_shared_links__start_the_next_episode_by_themselves() -> None:
    envs = SharedLinks(2, rounds=3)
    envs.reset(seed=1)
    steps = [envs.step(np.ones((2, 1), np.float32)) for _ in range(5)]
    assert [bool(truncated.all()) for _, _, _, truncated, _ in steps] == [False, False, True, False, False]
    seen, rewards, *_ = steps[3]
    assert (rewards == 0).all()
    assert (seen[:, 0] == np.float32(np.log2(10))).all()


def test_shared_link__fair_rate_without_queue_is_the_best_reward() -> None:
    env = SharedLink(rival=None, capacity_bps=(12e6, 12e6), rtt_s=(0.1, 0.1), loss=(0, 0))
    env.reset(seed=1)
    for _ in range(3):  # 10 x 2^3 = 80 packets, and 100 are the bandwidth-delay product
        env.step(np.ones(1, np.float32))
    _, reward, _, _, info = env.step(np.array([np.log2(100 / 80)], np.float32))
    assert abs(reward) < 1e-6
    assert abs(info["rate_bps"] - 12e6) < 10


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rival": "gtp"}, 'rival: "gtp" has no window rule'),
        ({"loss": (0.1, 0.9)}, "loss: "),
        ({"rtt_s": (0.1, 0.01)}, "rtt_s: "),
        ({"rounds": 0}, "rounds: 0"),
    ],
)
def test_shared_links__mistakes_name_the_argument(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SharedLinks(2, **options)


def test_shared_links__nan_is_not_an_action() -> None:
    envs = fairwave.gym.SharedLinks(1)
    envs.reset(seed=1)
    with pytest.raises(ValueError, match="nan"):
        envs.step(np.array([[np.nan]], np.float32))


def test_example__learns_and_is_the_same_each_time() -> None:
    runs = [
        subprocess.run([sys.executable, "examples/gym_policy.py"], capture_output=True, text=True, timeout=LIMIT_S)
        for _ in range(2)
    ]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[0].stdout == runs[1].stdout
    learned, constant, newreno = (
        float(part.split()[-1]) for part in runs[0].stdout.splitlines()[1].split(": ")[1].split(",")
    )
    assert learned > newreno > constant
