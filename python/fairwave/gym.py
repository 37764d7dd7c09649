"""Environments of Gymnasium: learn the window of one session next to a built-in scheme.

The extra ``fairwave[gym]`` installs gymnasium. ``import fairwave.gym`` registers "fairwave/SharedLink-v0" for
``gymnasium.make`` and ``make_vec``.

One episode is one link, and a step is a round trip. The two sessions share a FIFO queue as fluids: windows above the
bandwidth-delay product wait in it, and what exceeds its size is lost, as is a random share. The other session is a
`Controller`. The model has no packets, so train here and then judge in the packet model with `league`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fairwave import _core

try:
    import gymnasium
except ImportError as error:
    raise ImportError("gymnasium is not installed\nhint: pip install 'fairwave[gym]'") from error

__all__ = ["SharedLink", "SharedLinks"]

_Range = tuple[float, float]
_OBSERVATIONS = gymnasium.spaces.Box(
    np.array([0, 0, 0, 0], np.float32), np.array([20, np.inf, 1, 1], np.float32), dtype=np.float32
)
_ACTIONS = gymnasium.spaces.Box(-1, 1, (1,), np.float32)


class SharedLinks(gymnasium.vector.VectorEnv[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[Any]]):
    """Many `SharedLink` environments, all stepped by one native call.

    Observations, actions, rewards and infos are those of `SharedLink`, with a row for each environment. An environment
    whose episode ended starts the next one at the next step, which ignores the action and has the reward 0.

    Args:
        num_envs: Number of environments.
        options: Arguments of `SharedLink`.

    Raises:
        ValueError: An argument is invalid; the message has its name.

    Example:
        >>> import numpy as np, fairwave.gym
        >>> envs = fairwave.gym.SharedLinks(1000, rival="newreno")
        >>> seen, _ = envs.reset(seed=1)
        >>> seen, rewards, ended, truncated, infos = envs.step(np.ones((1000, 1), np.float32))
        >>> seen.shape, bool((rewards <= 0).all()), infos["rate_bps"].shape
        ((1000, 4), True, (1000,))
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (the type of gymnasium)
        "autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP
    }

    def __init__(self, num_envs: int = 1, **options: Any) -> None:
        """Make the environments."""
        if num_envs < 1:
            raise ValueError(f"num_envs: {num_envs} must be at least 1")
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = _OBSERVATIONS, _ACTIONS
        self.observation_space = gymnasium.vector.utils.batch_space(_OBSERVATIONS, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(_ACTIONS, num_envs)
        self._core = _links(**options)
        self._has_seeds = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Start an episode in every environment; number i has the seed ``seed + i``, or ``options["seeds"][i]``."""
        super().reset(seed=seed)
        seeds = [int(each) for each in (options or {}).get("seeds", [])]
        if seeds and len(seeds) != self.num_envs:
            raise ValueError(f"seeds: {len(seeds)} for {self.num_envs} environments")
        if not seeds and (seed is not None or not self._has_seeds):
            first = int(self.np_random.integers(2**62)) if seed is None else seed
            seeds = list(range(first, first + self.num_envs))
        self._has_seeds = True
        return self._core.reset(seeds or None), {}

    def step(
        self, actions: npt.NDArray[np.float32]
    ) -> tuple[
        npt.NDArray[np.float32], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, npt.NDArray[Any]]
    ]:
        """Let a round trip pass in every environment."""
        seen, rewards, truncated, rate_bps, fair_bps = self._core.step(_actions(actions, self.num_envs))
        there = np.ones(self.num_envs, np.bool_)
        infos = {"rate_bps": rate_bps, "_rate_bps": there, "fair_bps": fair_bps, "_fair_bps": there}
        return seen, rewards, np.zeros(self.num_envs, np.bool_), truncated, infos


class SharedLink(gymnasium.Env[npt.NDArray[np.float32], npt.NDArray[np.float32]]):
    """A session's window on a link that it shares with another session; a step is a round trip.

    The observation has four numbers, all of the round that ended: the base-2 logarithm of the window in packets of
    1500 bytes (0 to 20), the round-trip time over the least of the episode minus 1, the delivered rate over the
    largest of the episode (0 to 1), and the lost share of the window (0 to 1).

    The action, -1 to 1, multiplies the window by 2^action for the next round, between 1 and 2^20 packets; the first
    window is 10 packets.

    The reward is at most 0: -|log2(rate / fair rate)| - queueing delay / round-trip time without a queue - 10 x lost
    share. The fair rate is half of the capacity, or all of it without another session.

    The info has ``rate_bps`` and ``fair_bps`` in bit/s. Episodes never terminate; they are truncated after ``rounds``.

    Args:
        rival: Scheme of the other session, one with a window rule ("cubic", "newreno", "vegas", ...); None for none.
        capacity_bps: Range of the capacity, drawn log-uniformly for each episode, in bit/s.
        rtt_s: Range of the round-trip time without a queue, drawn log-uniformly, in seconds.
        queue_bdp: Range of the queue's size, in bandwidth-delay products.
        loss: Range of the share of packets that are lost at random.
        rounds: Steps of an episode.

    Raises:
        ValueError: An argument is invalid; the message has its name.

    Example:
        >>> import gymnasium, fairwave.gym
        >>> env = gymnasium.make("fairwave/SharedLink-v0", rival=None, loss=(0, 0))
        >>> seen, _ = env.reset(seed=1)
        >>> seen[0] == np.float32(np.log2(10))
        np.True_
        >>> seen, reward, terminated, truncated, info = env.step(env.action_space.sample())
        >>> 0 < info["rate_bps"] <= info["fair_bps"]
        True
    """

    def __init__(self, **options: Any) -> None:
        """Make the environment."""
        self.observation_space, self.action_space = _OBSERVATIONS, _ACTIONS
        self._core = _links(**options)
        self._has_seed = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        if seed is None and not self._has_seed:
            seed = int(self.np_random.integers(2**62))
        self._has_seed = True
        return self._core.reset(None if seed is None else [seed])[0], {}

    def step(
        self, action: npt.NDArray[np.float32]
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, float]]:
        """Let a round trip pass."""
        seen, rewards, truncated, rate_bps, fair_bps = self._core.step(_actions(action, 1))
        info = {"rate_bps": float(rate_bps[0]), "fair_bps": float(fair_bps[0])}
        return seen[0], float(rewards[0]), False, bool(truncated[0]), info


def _actions(given: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.float64]:
    actions = np.clip(np.asarray(given, np.float64).reshape(count), -1.0, 1.0)
    if np.isnan(actions).any():
        raise ValueError("action: nan is not a number from -1 to 1")
    return actions


def _links(
    rival: str | None = "cubic",
    capacity_bps: _Range = (5e6, 100e6),
    rtt_s: _Range = (0.01, 0.1),
    queue_bdp: _Range = (0.25, 2.0),
    loss: _Range = (0.0, 1e-3),
    rounds: int = 200,
) -> _core.SharedLinks:
    for name, given, limits in [
        ("capacity_bps", capacity_bps, (1e5, 1e12)),
        ("rtt_s", rtt_s, (1e-5, 10.0)),
        ("queue_bdp", queue_bdp, (0.0, 100.0)),
        ("loss", loss, (0.0, 0.5)),
    ]:
        low, high = given
        if not (math.isfinite(low) and limits[0] <= low <= high <= limits[1]):
            raise ValueError(f"{name}: {given} is not a range from {limits[0]:g} to {limits[1]:g}")
    if not 1 <= rounds < 2**31:
        raise ValueError(f"rounds: {rounds} must be from 1 to 2^31 - 1")
    return _core.SharedLinks([], capacity_bps, rtt_s, queue_bdp, loss, rival, rounds)


gymnasium.register(
    "fairwave/SharedLink-v0",
    entry_point="fairwave.gym:SharedLink",
    vector_entry_point="fairwave.gym:SharedLinks",
)
