"""Networks: a loop of one's own, optimizers, schedules, a Learner with callbacks and metrics."""

# pyright: strict, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import adjoint as ad
from adjoint import Tensor, nn

Array = npt.NDArray[np.float32]


class Network(nn.Module):
    first: nn.Linear
    norm: nn.LayerNorm
    layers: list[nn.Linear]
    dropout: nn.Dropout
    activation: nn.GELU
    scale: Tensor

    def __init__(self, inputs: int, hidden: int = 16) -> None:
        self.first = nn.Linear(inputs, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.layers = [nn.Linear(hidden, hidden) for _ in range(2)]
        self.dropout = nn.Dropout(0.1)
        self.activation = nn.GELU()
        self.scale = ad.ones(hidden)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.activation(self.norm(self.first(x)))
        for layer in self.layers:
            x = x + ad.tanh(layer(x)) * self.scale
        return self.dropout(x).mean(axis=-1)


X = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
Y = X.sum(axis=1)

# values, and gradients of the model
net = Network(3)
optimizer = ad.optim.AdamW(lr=ad.optim.cosine(1e-3, 100), weight_decay=0.01)
state = optimizer.init(net)


def objective(net: Network, x: Array, y: Array) -> Tensor:
    return nn.mse_loss(net(ad.asarray(x)), y)


step = ad.compile(ad.value_and_grad(objective))
for epoch in range(2):
    value, gradients = step(net, X, Y)
    net, state = optimizer.step(net, gradients, state)
    print(f"{epoch}: {value:.3f}")

# leaves
net = net.require_grad()
for i in range(0, 64, 16):
    loss = objective(net, X[i : i + 16], Y[i : i + 16])
    net, state = optimizer.step(net, loss.backward(), state)
    print(loss.item(), loss.dtype, loss.shape)

predicted = net.train(False)(ad.asarray(X)).numpy()
print(predicted.shape, predicted.dtype)
for name, parameter in net.named_parameters().items():
    print(name, parameter.shape, parameter.dtype, parameter.size)
sequential = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 1))
print(sequential(X).shape, sequential[0], sequential.num_params())
print(nn.Linear(3, 4)(X), nn.Softmax(axis=-1)([[1.0, 2.0]]), nn.Conv2d(1, 2, 3)(np.ones((1, 1, 5, 5))), nn.MaxPool2d(2))

loader = ad.data.DataLoader((X, Y), 16, shuffle=True, seed=0)
for x, y in loader:
    print(x.shape, y.shape)


class Print(ad.train.Callback):
    def after_epoch(self, run: ad.train.Run) -> None:
        print(run.epoch, run.history["loss"][-1])


learner = ad.train.Learner(
    Network(3),
    nn.mse_loss,
    ad.optim.Adam(lr=1e-3),
    metrics=[ad.train.MAE()],
    callbacks=[Print(), ad.train.EarlyStopping()],
)
net, history = learner.fit(loader, [(X, Y)], epochs=2)
print(history, learner.evaluate([(X, Y)])["mae"], learner.predict(X).shape, history.columns)
