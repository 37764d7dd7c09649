"""Learn a linear policy for the window of one session next to CUBIC, by the cross-entropy method.

usage: python examples/gym_policy.py

The learned policy is compared with NewReno, the built-in rule, in the learner's place. The result depends on the seed
only. `pip install 'fairwave[gym]'` installs what it needs.
"""

import numpy as np
import numpy.typing as npt

import fairwave as fw
from fairwave.gym import SharedLinks

CANDIDATES, EPISODES, ROUNDS, GENERATIONS, ELITE = 32, 16, 100, 20, 6
Floats = npt.NDArray[np.float64]


def features(seen: npt.NDArray[np.float32]) -> Floats:
    """Inputs of the policy: the observations, losses enlarged, and a constant."""
    return np.column_stack([seen[:, 0] / 10, seen[:, 1], seen[:, 2], 100 * seen[:, 3], np.ones(len(seen))])


def rewards_of(policies: Floats, seed: int) -> Floats:
    """Mean reward a round of each policy, over the same links for all."""
    envs = SharedLinks(len(policies) * EPISODES, rounds=ROUNDS)
    # Each policy gets the links of the same seeds: EPISODES links a policy.
    seen, _ = envs.reset(options={"seeds": list(range(seed, seed + EPISODES)) * len(policies)})
    weights = np.repeat(policies, EPISODES, axis=0)
    total = np.zeros(len(weights))
    for _ in range(ROUNDS):
        actions = np.tanh((features(seen) * weights).sum(axis=1))
        seen, rewards, *_ = envs.step(actions[:, None].astype(np.float32))
        total += rewards
    return total.reshape(len(policies), EPISODES).mean(axis=1) / ROUNDS


def learn(seed: int) -> Floats:
    """The mean of the last generation's best policies."""
    random = np.random.default_rng(seed)
    mean, spread = np.zeros(5), np.ones(5)
    for generation in range(GENERATIONS):
        policies = mean + spread * random.standard_normal((CANDIDATES, 5))
        order = np.argsort(rewards_of(policies, seed + 1000 * (generation + 1)))
        best = policies[order[-ELITE:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.02
    return mean


def reward_of_newreno(seed: int) -> float:
    """Mean reward a round of NewReno on the links of `rewards_of`."""
    envs = SharedLinks(EPISODES, rounds=ROUNDS)
    seen, _ = envs.reset(seed=seed)
    rules = [fw.Controller("newreno", initial_window_packets=10) for _ in range(EPISODES)]
    random, total = np.random.default_rng(seed), 0.0
    for _ in range(ROUNDS):
        for rule, (log2_window, _, _, lost) in zip(rules, seen, strict=True):
            window = 2.0 ** float(log2_window)
            if random.random() < 1 - (1 - float(lost)) ** window:
                rule.on_loss()
            else:
                rule.on_ack(max(1, round(window)))
        wanted = np.log2([rule.window_packets for rule in rules]) - seen[:, 0]
        seen, rewards, *_ = envs.step(wanted[:, None].astype(np.float32))
        total += rewards.mean()
    return total / ROUNDS


if __name__ == "__main__":
    policy = learn(seed=1)
    unseen = 10**6
    learned, untrained = rewards_of(np.array([policy, np.zeros(5)]), unseen)
    print("weights:", policy.round(2).tolist())
    print(f"mean reward a round on links not seen in training: learned {learned:.2f},", end=" ")
    print(f"constant window {untrained:.2f}, newreno {reward_of_newreno(unseen):.2f}")
