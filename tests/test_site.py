"""The site: its tables run, it builds and runs its tutorial, its links lead somewhere, every public name is there."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import inspect
import json
import os
import re
import shutil
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import processes
import pytest
from conftest import peer
from each import Each
from numpy.testing import assert_allclose
from versions import versions

import adjoint as ad

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LIBRARIES = {"pytorch": "torch", "jax": "jax", "autograd": "autograd"}


# --- what you write there, and what you write here ---


def rows(text: str) -> list[tuple[str, str]]:
    """The code of the first two columns of a page's table."""
    return re.findall(r"^\| `([^`]*)` \| `([^`]*)` \|", text, re.MULTILINE)


def value_of(code: str, scope: dict[str, Any]) -> Any:
    """What the last of some statements gives; an assignment gives None."""
    *first, last = code.split("; ")
    exec("\n".join(first), scope)
    try:
        compiled = compile(last, "<cell>", "eval")
    except SyntaxError:
        return exec(last, scope)
    return eval(compiled, scope)


def agree(here: Any, there: Any) -> bool:
    """Compare numbers, and say whether there were any."""
    if isinstance(there, (tuple, list)) and not all(isinstance(n, int) for n in there):
        assert len(here) == len(there)
        return all([agree(*pair) for pair in zip(here, there, strict=True)])
    if isinstance(there, dict):
        assert here.keys() == there.keys()
        return all([agree(here[name], there[name]) for name in there])
    here, there = (np.asarray(x.detach() if hasattr(x, "detach") else x) for x in (here, there))
    if there.dtype.kind not in "biufc":
        return False
    assert here.shape == there.shape
    assert_allclose(here, there, rtol=2e-5, atol=1e-6)
    return True


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # in torch.func.hessian
@pytest.mark.parametrize("page", ["numpy", "pytorch", "jax", "autograd", "burn"])
def test_both_columns_of_a_table_give_the_same(page: str) -> None:
    if importlib.util.find_spec(LIBRARIES.get(page, "numpy")) is None:
        pytest.skip(f"needs {page}: pip install 'adjoint[peers]'")
    text = (DOCS / "coming_from" / f"{page}.md").read_text()
    setup = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    found = rows(text)
    assert len(found) == len(re.findall(r"^\| `", text, re.MULTILINE)) >= 12
    compared = 0
    with Each() as each:
        for there, here in found:
            with each(there):
                scope: dict[str, Any] = {"__name__": "__main__"}
                exec(setup, scope)
                value = value_of(here, scope)
                if page != "burn":  # which is Rust
                    compared += agree(value, value_of(there, scope))
    assert page == "burn" or compared >= len(found) - 2


def test_a_row_that_differs_is_found() -> None:
    assert not agree("a", "a")
    assert agree((1.0, {"a": np.ones(2)}), (1.0, {"a": np.ones(2)}))
    for there in (np.ones(3), np.zeros(2)):
        with pytest.raises(AssertionError):
            agree(np.ones(2), there)


# what code on a page asks for, and the extra that brings it
NEEDS = {
    r"^ *(import|from) scipy|ad\.scipy\.": "scipy|sparse",
    r"ad\.sparse_|\"sparse\"": "scipy|sparse",
    r"^ *(import|from) torch": "torch",
    r"^ *(import|from) dask": "dask",
    r"^ *(import|from) pandas": "pandas",
    r"^ *(import|from) (sklearn|matplotlib)": "examples|draw",
    r"\.save\(path|ad\.train\.(save|load|Checkpoints)": "train",
    r"ad\.(draw|plot)\b": "draw",
    r"\.lower\(|native": "compile",
}


def missing_extras(text: str) -> set[str]:
    """The extras that code on a page needs, and of which nothing is said before it."""
    found, said = set(), ""
    for prose, code in re.findall(
        r"(.*?)^(?:```(?:python|\{code-cell\})[^\n]*\n(.*?)^```|\Z)", text, re.MULTILINE | re.DOTALL
    ):
        said += " ".join(re.findall(r"pip install [^`]*", prose))
        found |= {
            extra for asks, extra in NEEDS.items() if re.search(asks, code, re.MULTILINE) and not re.search(extra, said)
        }
    return found


def test_pages_say_what_to_install_before_their_code_needs_it() -> None:
    pages = sorted([*(DOCS / "how_to").glob("*.md"), *(DOCS / "learn").glob("*.md")])
    first = (DOCS / "learn" / "index.md").read_text()
    with Each() as each:
        for page in pages:
            with each(page.name):
                assert missing_extras((first if page.name[0].isdigit() else "") + page.read_text()) == set()
    assert missing_extras("# A\n```python\nimport torch\n```\n`pip install torch`\n") == {"torch"}


# --- the build ---


def public_names() -> set[str]:
    """Everything that `dir` shows of `ad` and of its namespaces, as the index names it."""
    spaces = {"adjoint": ad, **{f"adjoint.{name}": getattr(ad, name) for name in ad._TABLE[""].split()}}
    spaces["adjoint.nn.init"] = ad.nn.init
    return {f"{prefix}.{name}" for prefix, space in spaces.items() for name in dir(space)} | spaces.keys()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site; in CI with all that it runs, the tutorial and the examples, elsewhere without."""
    for name in (
        "sphinx",
        "myst_nb",
        "pydata_sphinx_theme",
        "sphinx_copybutton",
        "sphinx_design",
        "sphinxext.opengraph",
    ):
        peer(name, extra="docs")
    out = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "DOCS_OUT": str(out), "PYTHON": sys.executable, "ADJOINT_COMPILE": "1"}
    quick = [] if os.environ.get("CI") else ["--quick"]
    processes.run([ROOT / "scripts/docs", *quick], env=environment, limit=1500)
    return out / "html"


@pytest.mark.slow
def test_every_entry_of_the_reference_has_an_example_and_its_facts() -> None:
    peer("sphinx", extra="docs")
    import facts
    import reference

    assert facts.listed().keys() <= reference.public().keys()
    known = 0
    with Each() as each:
        for full, value in reference.public().items():
            doc = inspect.getdoc(value) or ""
            if inspect.isclass(value) and issubclass(value, BaseException):
                continue
            with each(full):
                if inspect.isroutine(value) or inspect.isclass(value):
                    assert ">>>" in doc + reference.shown(full, doc)
                if full in facts.listed():
                    rows = facts.rows(full, value, doc)
                    assert {"Backends", "From"} <= rows.keys()
                    assert "Gradient" not in rows or "order 2" in rows["Gradient"]
                    known += "Errors" in rows or "Raises" in doc
    assert known > 480
    assert facts.rows("floor", ad.floor, "")["Errors"].startswith("DtypeError (floor: expected real numbers")
    assert facts.shapes("isin", ad.isin) != facts.shapes("add", ad.add)
    assert facts.kinds("lcm", ad.lcm) == "booleans, integers"


# what takes and gives no arrays, or trees of anything
SHAPELESS = """
    __array_namespace_info__ can_cast closure_convert default_device default_dtype device finfo
    get_num_threads iinfo isdtype register_namespace result_type set_default_device set_default_dtype
    use_device use_dtype ArrayAPI CuPy Dask NumPy Reference Torch Autodiff Backend Batched Dependence Profiled
    Tangent Taylor custom_batching custom_jvp custom_vjp
    data.DataLoader data.Source data.split debug.print
    nn.Buffer optim.GradScaler optim.Plateau optim.PlateauState optim.ScaleState optim.State optim.AverageState
    optim.constant optim.cosine optim.exponential optim.joined optim.linear optim.noam optim.one_cycle optim.polynomial
    optim.stairs optim.warmup random.seed testing.source_locations
    train.Callback train.Cluster train.EarlyStopping train.History train.Progress train.Run
    train.TensorBoard train.load train.save plot.history
    tree.flatten tree.leaves tree.map tree.paths tree.structure tree.unflatten
""".split()
SHAPES = re.compile(
    r"\b(shapes?|scalars?|0-d|vectors?|matri(x|ces)|broadcasts?|pytrees?)\b"
    r"|\((\.\.\.|(batch|n|m|a|classes|rows|outputs|steps|channels|times|k)\b[^()]*),"  # axes, as (batch, classes)
)


def says_shapes(full: str, seen: frozenset[str] = frozenset()) -> bool:
    """Whether an entry says which shapes there are: its text, a fact, or what it refers to."""
    import facts
    import reference

    value = reference.public().get(full)
    if value is None or full in seen:
        return False
    doc = inspect.getdoc(value) or ""
    called = getattr(value, "__call__", None) if inspect.isclass(value) else None  # noqa: B004
    prose = "\n".join([(text or "").partition(">>>")[0] for text in (doc, getattr(called, "__doc__", ""))])
    if SHAPES.search(prose) or "Shapes" in facts.rows(full, value, doc):
        return True
    space = full.rpartition(".")[0]
    named = re.findall(r"(?:^|\b(?:as|as in|as of|those of|of|by|is)\s)`(?:ad\.)?([\w.]+)`", prose, re.IGNORECASE)
    others = [f"{space}.{name}".lstrip(".") for name in named] + named
    if inspect.isclass(value):
        others += [key for key, base in reference.public().items() if base in value.__mro__[1:]]
    return any([says_shapes(other, seen | {full}) for other in others])


@pytest.mark.slow
def test_every_entry_of_the_reference_says_shapes_dtypes_and_errors() -> None:
    peer("sphinx", extra="docs")
    import facts
    import reference

    found = reference.public()
    assert set(SHAPELESS) <= found.keys()
    entries = [n for n, v in found.items() if (callable(v) and v not in vars(ad.errors).values()) or "stats." in n]
    assert len(entries) > 850
    with Each() as each:
        for full in entries:
            value = found[full]
            doc = inspect.getdoc(value) or ""
            rows = facts.rows(full, value, doc)
            with each(full):
                assert says_shapes(full) is (full not in SHAPELESS)
                parameters = reference.parameters(value)
                if inspect.isroutine(value) and "dtype" in parameters:
                    assert "Dtypes" in rows or re.search(r"dtype|int64|\b[Aa]s (in )?`", doc), "no dtype"
                raised = {kind for kind, _ in facts.messages().get(full, [])}
                assert raised <= {kind for kind in raised if kind in doc + rows.get("Errors", "")}, "no errors"


@pytest.mark.parametrize("doc", ["The hyperbolic sine.", "As `of_nothing`.", "Gives `(a)`, and (really) more."])
def test_a_docstring_without_shapes_is_found(doc: str, monkeypatch: pytest.MonkeyPatch) -> None:
    peer("sphinx", extra="docs")
    import reference

    def bare() -> None: ...

    bare.__doc__ = doc
    monkeypatch.setitem(reference.public(), "bare", bare)
    assert not says_shapes("bare")


@pytest.mark.slow
def test_every_public_name_has_an_anchor(site: Path) -> None:
    """In `objects.inv`, which search and other projects' links read, and on its page."""
    lines = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode().splitlines()
    found = {}
    for line in lines:
        name, kind, _, place, _ = line.split(" ", 4)
        if kind.startswith("py:"):
            found[name] = place.replace("$", name)
    names = public_names()
    assert len(names) > 900
    assert sorted(names - found.keys()) == []
    pages: dict[str, str] = {}
    for name in names:
        file, _, anchor = found[name].partition("#")
        text = pages.setdefault(file, (site / file).read_text())
        assert f'id="{anchor}"' in text, name


@pytest.mark.slow
def test_methods_of_tensors_have_anchors(site: Path) -> None:
    text = (site / "reference" / "tensor.html").read_text()
    for name in ("backward", "require_grad", "sum", "to_device", "shape"):
        assert f'id="adjoint.Tensor.{name}"' in text


@pytest.mark.slow
def test_links_inside_of_the_site_lead_to_a_page_and_a_place(site: Path) -> None:
    links = re.compile(r'<a [^>]*href="([^"#?:]*)(?:\?[^"#]*)?(?:#([^"]*))?"')
    places: dict[Path, set[str]] = {}

    def ids(page: Path) -> set[str]:
        if page not in places:
            places[page] = set(re.findall(r'\bid="([^"]+)"', page.read_text()))
        return places[page]

    count, wrong = 0, set()
    for page in sorted(site.rglob("*.html")):
        if "_static" in page.relative_to(site).parts:
            continue
        for target, anchor in set(links.findall(page.read_text())):
            goal = (page.parent / unquote(target)).resolve() if target else page
            count += 1
            if not goal.is_file() or (anchor and goal.suffix == ".html" and unquote(anchor) not in ids(goal)):
                wrong.add((str(page.relative_to(site)), f"{target}#{anchor}"))
    assert count > 5000
    assert wrong == set()


@pytest.mark.slow
def test_the_site_asks_no_other_host(site: Path) -> None:
    """No script, style, picture or font from elsewhere: it works without a network."""
    outside = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(?:https?:)?//[^\"]+\"[^>]*>")
    for page in sorted(site.rglob("*.html")):
        found = [tag for tag in outside.findall(page.read_text()) if "canonical" not in tag]
        assert found == [], page.name


def test_versions_are_those_of_the_changelog() -> None:
    assert [entry["version"] for entry in versions((ROOT / "CHANGELOG.md").read_text())] == ["dev"]
    found = versions(
        "# Changelog\n\n## 1.1.0 (unreleased)\n\n### a\n\n## 1.0.1 (2027-01-02)\n\n## 1.0.0 (2027-01-01)\n"
    )
    assert [entry["name"] for entry in found] == ["1.1.0 (dev)", "1.0.1", "1.0.0"]
    assert [entry["url"] for entry in found] == ["../dev/", "../1.0.1/", "../1.0.0/"]
    assert [entry["version"] for entry in found if entry.get("preferred")] == ["1.0.1"]


# --- in a browser ---

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FRAMES = """<body><script>
const pages = PAGES;
(async () => {
  for (const page of pages) {
    const frame = document.createElement("iframe");
    frame.width = 375; frame.height = 800; frame.src = page;
    await new Promise(done => { frame.onload = done; document.body.append(frame); });
    const root = frame.contentDocument.documentElement;
    document.body.insertAdjacentHTML("beforeend", `<p>${page} ${root.scrollWidth}</p>`);
    frame.remove();
  }
})();
</script></body>"""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where a server on this machine shows the site."""
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def seen(address: str, milliseconds: int) -> tuple[str, list[str]]:
    """The page after so many milliseconds of its clock, and the errors of its console."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
               "--enable-logging=stderr", f"--virtual-time-budget={milliseconds}", "--dump-dom"]  # fmt: skip
    done = processes.run([CHROMIUM, *options, address])
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "[PST]" not in line]  # the theme's notes
    return done.stdout, said


@pytest.mark.slow
def test_search_finds_vmap(address: str) -> None:
    text, said = seen(f"{address}/search.html?q=vmap", 30000)
    assert 'href="reference/transforms.html#adjoint.vmap"' in text
    assert said == []


@pytest.mark.slow
def test_no_page_scrolls_sideways_on_a_phone(site: Path, address: str) -> None:
    pages = [str(path.relative_to(site)) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    (site / "frames.html").write_text(FRAMES.replace("PAGES", json.dumps(pages)))
    text, said = seen(f"{address}/frames.html", 120000)
    (site / "frames.html").unlink()
    widths = dict(re.findall(r"<p>([\w./]+) (\d+)</p>", text))
    assert widths.keys() == set(pages)
    assert {page: width for page, width in widths.items() if int(width) > 375} == {}
    assert said == []
