"""A transformer that writes like Python's manual, character by character.

Two layers of causal attention with rotary positions learn the help topics that come with Python, `pydoc_data.topics`:
some 465,000 characters, of which the last tenth is kept for the test. Prints how well each character is predicted,
beside counts of single characters and of pairs (a bigram model), and what the transformer writes on its own after a few
epochs. Draws the loss, and where in a text the characters are hard to guess. Takes about fifty seconds.

A. Vaswani et al., Attention is all you need (2017); J. Su et al., RoFormer (2021).
"""

from __future__ import annotations

import pydoc_data.topics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command_line import Parser, Stop, at_least, save

import adjoint as ad

WINDOW, WIDTH, LAYERS, HEADS, BATCH = 64, 64, 2, 4, 32

TEXT = "\n\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
LETTERS = sorted(set(TEXT))
CODES = np.array([LETTERS.index(letter) for letter in TEXT])
CUT = len(CODES) * 9 // 10

Array = np.ndarray


class Writer(ad.nn.Module):
    """A score for each letter that may come next, (batch, steps, letters), from those so far, (batch, steps)."""

    letters: ad.nn.Embedding
    body: ad.nn.TransformerEncoder
    scores: ad.nn.Linear

    def __init__(self) -> None:
        self.letters = ad.nn.Embedding(len(LETTERS), WIDTH)
        self.body = ad.nn.TransformerEncoder(WIDTH, HEADS, LAYERS, 4 * WIDTH, 0.0, norm_first=True, rotary=True)
        self.scores = ad.nn.Linear(WIDTH, len(LETTERS))

    def __call__(self, letters: ad.Tensor[Any]) -> ad.Tensor[Any]:
        return self.scores(self.body(self.letters(letters), is_causal=True))


def loss(scores: ad.Tensor[Any], following: ad.Tensor[Any]) -> ad.Tensor[Any]:
    """The mean cross entropy of a character, in nats."""
    return ad.nn.cross_entropy(scores.reshape((-1, len(LETTERS))), following.reshape((-1,)))


def windows(codes: Array, stride: int, **how: Any) -> ad.data.DataLoader:
    """Batches of windows, and of the same windows one letter later."""
    source = ad.data.windows(codes, WINDOW + 1, stride)
    return ad.data.DataLoader(source, BATCH, batch_transform=lambda x, rng: (x[:, :-1], x[:, 1:]), **how)


def train(seed: int, epochs: int) -> ad.train.Learner:
    """The learner, after so many epochs; it has seen no text after the cut."""
    ad.random.seed(seed)
    train = windows(CODES[:CUT], WINDOW // 2, shuffle=True, seed=seed)
    rate = ad.optim.warmup(ad.optim.cosine(4e-3, epochs * len(train)), 50)
    learner = ad.train.Learner(
        Writer(), loss, ad.optim.AdamW(lr=rate), callbacks=[ad.train.Progress()], clip=1.0, seed=seed
    )
    learner.fit(train, epochs=epochs)
    return learner


def counted() -> tuple[float, float]:
    """The test loss of the frequencies of letters, and of those of pairs of letters."""
    pairs = np.full((len(LETTERS), len(LETTERS)), 0.01)
    np.add.at(pairs, (CODES[: CUT - 1], CODES[1:CUT]), 1)
    single = pairs.sum(0) / pairs.sum()
    given = pairs / pairs.sum(1, keepdims=True)
    before, after = CODES[CUT:-1], CODES[CUT + 1 :]
    return float(-np.log(single[after]).mean()), float(-np.log(given[before, after]).mean())


def write(model: Writer, start: str, count: int, rng: np.random.Generator, temperature: float = 0.7) -> str:
    """The start and letters drawn one after the other, each by the scores that follow from those before."""
    codes = [LETTERS.index(letter) for letter in start]
    for _ in range(count):
        scores = model(ad.asarray([codes[-WINDOW:]])).numpy()[0, -1]
        codes.append(int(np.argmax(scores / temperature + rng.gumbel(size=len(scores)))))  # a draw from the softmax
    return "".join(LETTERS[code] for code in codes)


def surprises(learner: ad.train.Learner, start: int) -> Array:
    """How many nats each letter of a window of the test text costs after the first."""
    window = CODES[start : start + WINDOW + 1]
    logs = ad.nn.log_softmax(ad.asarray(learner.predict(window[None, :-1])[0]), axis=-1).numpy()
    return -logs[np.arange(WINDOW), window[1:]]


def draw(path: Path, learner: ad.train.Learner, test: float, counts: tuple[float, float]) -> None:
    """The loss of the steps beside those of counts, and letters of unseen text, the darker the less expected."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.35))
    steps = learner.run.history.steps
    left.plot(steps["step"], steps["loss"], linewidth=0.8, alpha=0.6, label="transformer, training")
    for name, value, color in (("letters", counts[0], "gray"), ("pairs", counts[1], "tab:red")):
        left.axhline(value, color=color, linestyle="--", label=f"frequencies of {name}, test: {value:.2f}")
    left.axhline(test, color="tab:blue", label=f"transformer, test: {test:.2f}")
    left.set(xlabel="step", ylabel="nats per character", title="Loss")
    left.legend()

    right.set(title="Unseen text: the redder, the less expected", xlim=(0, WINDOW), ylim=(12, 0))
    right.set_axis_off()
    for row in range(12):
        start = CUT + row * WINDOW
        for place, nats in enumerate(surprises(learner, start)):
            letter = LETTERS[CODES[start + 1 + place]]
            box = {"facecolor": (1, *[1 - min(nats, 6) / 7] * 2), "edgecolor": "none", "boxstyle": "square,pad=0.12"}
            shown = "↵" if letter == "\n" else letter
            how = {"family": "monospace", "fontsize": 8, "ha": "center", "va": "center", "parse_math": False}
            right.text(place + 0.5, row + 0.5, shown, bbox=box, **how)
    save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Parser("characters.py", __doc__)
    parser.add_argument("--epochs", type=at_least(1), default=2, help="times through the text (2)")
    parser.add_seed("the weights, the order and what is written")
    parser.add_out()
    options = parser.parse_args(arguments)

    with Stop("characters.py"):
        learner = train(options.seed, options.epochs)
        test, counts = learner.evaluate(windows(CODES[CUT:], WINDOW))["loss"], counted()
        for name, value in (("letters", counts[0]), ("pairs", counts[1]), ("transformer", test)):
            print(f"{name:>11}: {value:.3f} nats per character of the test, perplexity {np.exp(value):.1f}")
        rng, model = np.random.default_rng(options.seed), learner.model.valid()
        for start in ("The ", "Note: ", "   >>> "):
            print(f"--- {start!r} ---\n{write(model, start, 200, rng)}")
        draw(options.out, learner, test, counts)


if __name__ == "__main__":
    main(sys.argv[1:])
