"""Models that PyTorch's examples train, written anew: one text for both libraries, whose lines are compared.

What is drawn comes from NumPy, so that both see the same numbers: first values, noise, batches, actions.
"""

from __future__ import annotations

import contextlib
import io
import math
from typing import Any

import numpy as np


class Source:
    """Random numbers for a program."""

    def __init__(self, torch: Any, seed: int = 0) -> None:
        self.torch, self.random = torch, np.random.default_rng(seed)

    def normal(self, *shape: int, scale: float = 1.0) -> Any:
        return self.torch.tensor(self.random.standard_normal(shape) * scale, dtype=self.torch.float64)

    def started(self, model: Any) -> Any:
        """The model in double precision, with first values that both libraries have."""
        model.double()
        with self.torch.no_grad():
            for name, x in model.named_parameters():
                if x.ndim > 1 or "bias" in name:
                    scale = 1 / math.sqrt(math.prod(x.shape[1:])) if x.ndim > 1 else 0.1
                    x.copy_(self.normal(*x.shape, scale=scale))
        return model


def digits() -> tuple[Any, Any]:
    """Images of eight by eight that are told apart by which pixels are bright, and their classes."""
    r = np.random.default_rng(7)
    classes = r.integers(0, 10, 120)
    shapes = r.random((10, 8, 8)) > 0.6
    return (shapes[classes] + 0.2 * r.standard_normal((120, 8, 8))).astype(np.float64), classes


def report(step: int, loss: Any) -> None:
    print(step, f"{loss.item():.8f}")


def mlp(torch: Any) -> None:
    """Digits by two linear layers: loaders, SGD with momentum, a rate that falls, accuracy."""
    nn, F, data = torch.nn, torch.nn.functional, torch.utils.data
    source = Source(torch)
    images, classes = digits()

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1 = nn.Linear(64, 32)
            self.dropout = nn.Dropout(0.0)
            self.fc2 = nn.Linear(32, 10)

        def forward(self, x: Any) -> Any:
            x = torch.flatten(x, 1)
            x = self.dropout(F.relu(self.fc1(x)))
            return F.log_softmax(self.fc2(x), dim=1)

    device = torch.get_default_device()
    model = source.started(Net()).to(device)
    rows = data.TensorDataset(torch.tensor(images), torch.tensor(classes))
    train, test = data.Subset(rows, range(90)), data.Subset(rows, range(90, 120))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(3):
        model.train()
        for batch, (x, y) in enumerate(data.DataLoader(train, batch_size=30)):
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = F.nll_loss(model(x), y)
            loss.backward()
            optimizer.step()
            report(batch, loss)
        scheduler.step()
        model.eval()
        total, correct = 0.0, 0
        with torch.no_grad():
            for x, y in data.DataLoader(test, batch_size=10):
                output = model(x)
                total += F.nll_loss(output, y, reduction="sum").item()
                correct += (
                    output.argmax(dim=1, keepdim=True).eq(y.view_as(output.argmax(dim=1, keepdim=True))).sum().item()
                )
        print(f"epoch {epoch}: loss {total / len(test):.6f}, {correct} of {len(test)}, rate {scheduler.get_last_lr()}")


def cnn(torch: Any) -> None:
    """Digits by convolutions, batch normalisation and pools, with Adadelta."""
    nn = torch.nn
    source = Source(torch, 1)
    images, classes = digits()
    model = source.started(
        nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(4, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10),
        )
    )  # fmt: skip
    print(model)
    x, y = torch.tensor(images).unsqueeze(1), torch.tensor(classes)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for step in range(6):
        optimizer.zero_grad()
        loss = criterion(model(x[:40]), y[:40])
        loss.backward()
        optimizer.step()
        report(step, loss)
    model.eval()
    print((model(x[40:]).argmax(1) == y[40:]).double().mean().item(), model[1].running_mean.cpu())


def characters(torch: Any) -> None:
    """A recurrent network of characters, written out, that guesses the language of a name."""
    nn = torch.nn
    source = Source(torch, 2)
    names = [("anna", 0), ("otto", 1), ("emma", 0), ("hugo", 1)]
    letters = sorted({letter for name, _ in names for letter in name})

    class RNN(nn.Module):
        def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
            super().__init__()
            self.hidden_size = hidden
            self.i2h = nn.Linear(inputs + hidden, hidden)
            self.h2o = nn.Linear(hidden, outputs)
            self.softmax = nn.LogSoftmax(dim=1)

        def forward(self, line: Any) -> Any:
            hidden = torch.zeros(1, self.hidden_size, dtype=torch.float64)
            for i in range(line.size()[0]):
                hidden = torch.tanh(self.i2h(torch.cat((line[i], hidden), 1)))
            return self.softmax(self.h2o(hidden))

    def line(name: str) -> Any:
        out = torch.zeros(len(name), 1, len(letters), dtype=torch.float64)
        for i, letter in enumerate(name):
            out[i][0][letters.index(letter)] = 1
        return out

    rnn = source.started(RNN(len(letters), 8, 2))
    criterion = nn.NLLLoss()
    for epoch in range(4):
        total = 0.0
        for name, kind in names:
            rnn.zero_grad()
            loss = criterion(rnn(line(name)), torch.tensor([kind]))
            loss.backward()
            nn.utils.clip_grad_norm_(rnn.parameters(), 3)
            with torch.no_grad():
                for p in rnn.parameters():
                    p.add_(p.grad, alpha=-0.5)
            total += loss.item()
        print(epoch, f"{total:.8f}")
    print([rnn(line(name)).topk(1)[1].item() for name, _ in names])


def gan(torch: Any) -> None:
    """Steps of a generator and a discriminator of convolutions, each with its Adam."""
    nn = torch.nn
    source = Source(torch, 3)
    generator = nn.Sequential(
        nn.ConvTranspose2d(6, 8, 4, 1, 0, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
        nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip
    discriminator = nn.Sequential(
        nn.Conv2d(1, 8, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(8, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
    )  # fmt: skip
    source.started(generator)
    source.started(discriminator)
    criterion = nn.BCELoss()
    one, two = (torch.optim.Adam(m.parameters(), lr=2e-2, betas=(0.5, 0.999)) for m in (discriminator, generator))
    real_images = torch.tensor(digits()[0][:6]).unsqueeze(1)
    for step in range(3):
        discriminator.zero_grad()
        label = torch.full((6,), 1.0, dtype=torch.float64)
        on_real = criterion(discriminator(real_images).view(-1), label)
        on_real.backward()
        fake = generator(source.normal(6, 6, 1, 1))
        label.fill_(0.0)
        on_fake = criterion(discriminator(fake.detach()).view(-1), label)
        on_fake.backward()
        one.step()
        generator.zero_grad()
        label.fill_(1.0)
        loss = criterion(discriminator(fake).view(-1), label)
        loss.backward()
        two.step()
        print(step, f"{(on_real + on_fake).item():.8f} {loss.item():.8f} {fake.mean().item():.8f}")


def vae(torch: Any) -> None:
    """A variational autoencoder, with its reparametrisation and both parts of its loss."""
    nn, F = torch.nn, torch.nn.functional
    source = Source(torch, 4)

    class VAE(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.fc21, self.fc22 = nn.Linear(64, 20), nn.Linear(20, 4), nn.Linear(20, 4)
            self.fc3, self.fc4 = nn.Linear(4, 20), nn.Linear(20, 64)

        def forward(self, x: Any) -> Any:
            h = F.relu(self.fc1(x.view(-1, 64)))
            mu, logvar = self.fc21(h), self.fc22(h)
            z = mu + source.normal(*mu.shape) * torch.exp(0.5 * logvar)
            return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar

    model = source.started(VAE())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x = torch.tensor((digits()[0][:30] > 0.5).astype(np.float64))
    for step in range(5):
        optimizer.zero_grad()
        found, mu, logvar = model(x)
        bce = F.binary_cross_entropy(found, x.view(-1, 64), reduction="sum")
        loss = bce - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss.backward()
        optimizer.step()
        report(step, loss)


def gpt(torch: Any) -> None:
    """A small language model: causal attention, tied weights, decay for matrices alone, warm-up, samples."""
    nn, F = torch.nn, torch.nn.functional
    source = Source(torch, 5)
    text = "to be or not to be that is the question whether it is nobler"
    letters = sorted(set(text))
    width, heads, context = 16, 2, 12

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.register_buffer("bias", torch.tril(torch.ones(context, context)).view(1, 1, context, context))

        def forward(self, x: Any) -> Any:
            b, t, c = x.size()
            q, k, v = self.c_attn(x).split(width, dim=2)
            q, k, v = (y.view(b, t, heads, c // heads).transpose(1, 2) for y in (q, k, v))
            fused = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
            y = F.softmax(att, dim=-1) @ v
            assert torch.allclose(y, fused)
            return self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), Attention(), nn.LayerNorm(width, bias=False)
            self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

        def forward(self, x: Any) -> Any:
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.transformer = nn.ModuleDict(
                {
                    "wte": nn.Embedding(len(letters), width), "wpe": nn.Embedding(context, width),
                    "drop": nn.Dropout(0.0), "h": nn.ModuleList([Block() for _ in range(2)]),
                    "ln_f": nn.LayerNorm(width),
                }
            )  # fmt: skip
            self.lm_head = nn.Linear(width, len(letters), bias=False)
            self.transformer.wte.weight = self.lm_head.weight

        def forward(self, idx: Any, targets: Any = None) -> Any:
            position = torch.arange(0, idx.size(1), dtype=torch.long)
            x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(position))
            for block in self.transformer.h:
                x = block(x)
            logits = self.lm_head(self.transformer.ln_f(x))
            if targets is None:
                return logits[:, [-1], :], None
            return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    model = source.started(GPT())
    named = dict(model.named_parameters())
    decayed = [p for p in named.values() if p.dim() >= 2]
    rest = [p for p in named.values() if p.dim() < 2]
    print(len(decayed), len(rest), sum([p.numel() for p in model.parameters()]))
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3))
    codes = torch.tensor([letters.index(letter) for letter in text])
    for step in range(4):
        starts = source.random.integers(0, len(text) - context - 1, 4)
        x = torch.stack([codes[i : i + context] for i in starts])
        y = torch.stack([codes[i + 1 : i + 1 + context] for i in starts])
        _, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        warmup.step()
        print(step, f"{loss.item():.8f} {norm.item():.8f} {warmup.get_last_lr()}")
    model.eval()
    idx = codes[:3].unsqueeze(0)
    with torch.no_grad():
        for _ in range(8):
            logits, _ = model(idx[:, -context:])
            logits = logits[:, -1, :] / 0.8
            best, _ = torch.topk(logits, 5)
            logits[logits < best[:, [-1]]] = -float("inf")
            chances = F.softmax(logits, dim=-1)[0].cpu().numpy()
            idx = torch.cat(
                (idx, torch.tensor([[source.random.choice(len(chances), p=chances / chances.sum())]])), dim=1
            )
    print("".join([letters[i] for i in idx[0].tolist()]))


def reinforce(torch: Any) -> None:
    """Policy gradients on a small environment: a walk that is paid for reaching the right end."""
    nn, F = torch.nn, torch.nn.functional
    source = Source(torch, 6)
    policy = source.started(nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2)))
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=2e-2)
    for episode in range(5):
        place, logs, rewards = 2, [], []
        while 0 < place < 4 and len(rewards) < 20:
            state = F.one_hot(torch.tensor(place), 5).double()
            logp = F.log_softmax(policy(state), dim=-1)
            action = int(source.random.random() < logp[1].exp().item())
            place += 1 if action else -1
            logs.append(logp[action])
            rewards.append(1.0 if place == 4 else -0.1)
        returns: list[float] = []
        for reward in reversed(rewards):
            returns.insert(0, reward + 0.9 * (returns[0] if returns else 0.0))
        weights = torch.tensor(returns, dtype=torch.float64)
        weights = (weights - weights.mean()) / (weights.std(unbiased=False) + 1e-6)
        optimizer.zero_grad()
        loss = torch.stack([-log * weight for log, weight in zip(logs, weights, strict=True)]).sum()
        loss.backward()
        optimizer.step()
        print(episode, len(rewards), f"{loss.item():.8f}")


def series(torch: Any) -> None:
    """Sine waves by two LSTM cells, step by step, fitted with L-BFGS; then what comes next."""
    nn = torch.nn
    source = Source(torch, 7)
    t = np.arange(14) + 4.0 * np.arange(3)[:, None]
    waves = torch.tensor(np.sin(t / 3.0))

    class Sequence(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm1, self.lstm2, self.linear = nn.LSTMCell(1, 5), nn.LSTMCell(5, 5), nn.Linear(5, 1)

        def forward(self, x: Any, future: int = 0) -> Any:
            outputs = []
            h, c, h2, c2 = (torch.zeros(x.size(0), 5, dtype=torch.double) for _ in range(4))
            for step in x.split(1, dim=1):
                h, c = self.lstm1(step, (h, c))
                h2, c2 = self.lstm2(h, (h2, c2))
                output = self.linear(h2)
                outputs.append(output)
            for _ in range(future):
                h, c = self.lstm1(output, (h, c))
                h2, c2 = self.lstm2(h, (h2, c2))
                output = self.linear(h2)
                outputs.append(output)
            return torch.cat(outputs, dim=1)

    model = source.started(Sequence())
    criterion = nn.MSELoss()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
    for step in range(3):

        def closure() -> Any:
            optimizer.zero_grad()
            loss = criterion(model(waves[:, :-1]), waves[:, 1:])
            loss.backward()
            return loss

        report(step, optimizer.step(closure))
    with torch.no_grad():
        print([f"{v:.6f}" for v in model(waves[:1, :-1], future=3)[0, -4:].tolist()])


def super_resolution(torch: Any) -> None:
    """Images of twice the size by convolutions and a pixel shuffle."""
    nn = torch.nn
    source = Source(torch, 8)
    relu = nn.ReLU()
    layers = [nn.Conv2d(1, 6, 5, 1, 2), nn.Conv2d(6, 6, 3, 1, 1), nn.Conv2d(6, 4, 3, 1, 1)]
    model = source.started(nn.Sequential(layers[0], relu, layers[1], relu, layers[2], nn.PixelShuffle(2)))
    with torch.no_grad():
        for layer in layers:
            layer.bias.zero_()
    fine = torch.tensor(digits()[0][:5]).unsqueeze(1)
    coarse = nn.functional.interpolate(fine, scale_factor=0.5, mode="bilinear", align_corners=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(4):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(coarse), fine)
        loss.backward()
        optimizer.step()
        print(step, f"{loss.item():.8f} {10 * math.log10(1 / loss.item()):.6f} dB")


def style(torch: Any) -> None:
    """A step of fast neural style: a network with instance norms, losses of features and of their Gram matrices."""
    nn = torch.nn
    source = Source(torch, 9)

    class Residual(nn.Module):
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.pad = nn.ReflectionPad2d(1)
            self.conv1, self.conv2 = nn.Conv2d(channels, channels, 3), nn.Conv2d(channels, channels, 3)
            self.in1, self.in2 = (nn.InstanceNorm2d(channels, affine=True) for _ in range(2))

        def forward(self, x: Any) -> Any:
            out = torch.relu(self.in1(self.conv1(self.pad(x))))
            return self.in2(self.conv2(self.pad(out))) + x

    net = nn.Sequential(
        nn.ReflectionPad2d(1), nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4, affine=True), nn.ReLU(), Residual(4),
        nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(4, 3, 3, stride=2, padding=1),
    )  # fmt: skip
    features = nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(5, 6, 3), nn.ReLU())
    source.started(net)
    source.started(features)
    for p in features.parameters():
        p.requires_grad = False

    def gram(y: Any) -> Any:
        b, channels, h, w = y.size()
        flat = y.view(b, channels, w * h)
        return flat.bmm(flat.transpose(1, 2)) / (channels * h * w)

    x, painting = source.normal(2, 3, 10, 10), source.normal(1, 3, 10, 10)
    wanted = gram(features(painting)).expand(2, -1, -1)
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    mse = nn.MSELoss()
    for step in range(3):
        optimizer.zero_grad()
        y = net(x)
        content = mse(features(y), features(x))
        look = mse(gram(features(y)), wanted)
        smooth = (y[:, :, 1:] - y[:, :, :-1]).abs().mean()
        loss = content + 10.0 * look + 0.1 * smooth
        loss.backward()
        optimizer.step()
        print(step, f"{content.item():.8f} {look.item():.8f} {smooth.item():.8f}")


ALL = ["mlp", "cnn", "characters", "gan", "vae", "gpt", "reinforce", "series", "super_resolution", "style"]


def printed(name: str, torch: Any, device: str = "cpu") -> list[str]:
    """The lines that a program prints under a library, on a device."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), torch.device(device):
        globals()[name](torch)
    return out.getvalue().splitlines()
