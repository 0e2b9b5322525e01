"""From LLVM's text to functions that Python calls."""

from __future__ import annotations

import ctypes
import functools
import importlib
import platform
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint import locks
from adjoint.compiler.native.arena import spare
from adjoint.compiler.setting import setting
from adjoint.lines import stack_level

VERSION = 3  # of what passes make of a text
_VECTORS = re.compile(r"<(?!1 x)\d+ x")  # of more than one number
_ONE_INTEGER = "<1 x i"
_AS_ONE = re.compile(r"bitcast (i\d+) (\S+) to <1 x \1>")
_NARROW = {b"sandybridge", b"bulldozer", b"piledriver", b"steamroller", b"excavator", b"haswell", b"zen"}  # of OpenBLAS

# Where NumPy's header numpy/ndarraytypes.h says that an array has its data, axes, dtype and flags (PyArrayObject), from
# its beginning, on 64-bit machines, after the count of references and the type.
TYPE, DATA, AXES, SHAPE, DTYPE, FLAGS = 8, 16, 24, 32, 56, 64
WANTED = 0x101  # contiguous in C's order, and aligned


class NotHeldError(Exception):
    """A check of machine code does not hold: Python runs the graph, and raises the error."""


class _Method(ctypes.Structure):
    """PyMethodDef of Python's C interface."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FASTCALL = 0x80


@functools.cache
def llvm() -> Any:
    """llvmlite's binding; None where it is not installed, or where arrays do not lie as they are read here."""
    try:
        binding = importlib.import_module("llvmlite.binding")
    except ImportError:
        return None
    if not _as_expected():
        return None
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    api: Any = ctypes.pythonapi
    symbols = {
        "adjoint_array": id(np.ndarray),
        "adjoint_not_held": id(NotHeldError),
        "adjoint_spare": ctypes.addressof(spare),
        **{f"adjoint_{name}": id(np.dtype(name)) for name in DTYPES},
        **{name: _address(api[name]) for name in _PYTHON},
        **{f"adjoint_{name}": _address(function) for name, function in blas()[1].items()},
    }
    for name, address in symbols.items():
        binding.add_symbol(name, address)
    locks.held_over_forks(binding.ffi.lib._lock)  # of every call into LLVM
    return binding


_PYTHON = (
    "PyBool_FromLong PyEval_SaveThread PyEval_RestoreThread PyGILState_Ensure PyGILState_Release PyErr_CheckSignals "
    "PyErr_Occurred PyErr_SetNone PyErr_NoMemory PyLong_AsSsize_t PyMem_RawMalloc PyMem_RawFree"
).split()
DTYPES = "float32 float64 bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@functools.cache
def _numpys_library() -> Any:
    """The library that NumPy itself is, whose symbols include those of the libraries that it needs; None without."""
    try:
        file: Any = importlib.import_module("numpy._core._multiarray_umath").__file__
        return ctypes.CDLL(file)
    except (ImportError, OSError, TypeError):  # NumPy is built in another way
        return None


@functools.cache
def blas() -> tuple[int, dict[str, Any]]:
    """The bits of an integer of the BLAS that NumPy itself calls, and functions of it; none where it is not found."""
    library = _numpys_library()
    try:
        config: Any = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    except (KeyError, TypeError):
        return 0, {}
    built = f"{config.get('name')} {config.get('openblas configuration')}".upper()
    plain = 64 if "USE64BITINT" in built or "ILP64" in built else 32
    for pattern, bits in (
        ("scipy_cblas_{}64_", 64),
        ("cblas_{}64_", 64),
        ("cblas_{}$NEWLAPACK$ILP64", 64),
        ("scipy_cblas_{}", plain),
        ("cblas_{}", plain),
    ):
        names = [letter + name for letter in "sd" for name in ("gemm", "gemv", "dot")]
        found = {name: getattr(library, pattern.format(name), None) for name in names}
        if all(found.values()):
            return bits, found
    return 0, {}


@functools.cache
def blas_is_narrow() -> bool:
    """Whether NumPy's BLAS is known to be made for shorter vectors than this processor has."""
    library = _numpys_library()
    for name in ("scipy_openblas_get_corename64_", "openblas_get_corename64_", "openblas_get_corename"):
        corename = getattr(library, name, None)
        if corename is not None:
            corename.restype = ctypes.c_char_p
            return has_avx512() and (corename() or b"").lower() in _NARROW
    return False


def integer_bits() -> int:
    """The bits of an integer of BLAS; 0 where there is none."""
    return blas()[0]


def _as_expected() -> bool:
    """Whether an array has its fields where they are read."""
    import sysconfig  # as hashlib below: whoever compiles needs it, the import of all does not

    if sysconfig.get_config_var("Py_GIL_DISABLED") or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    x = np.zeros((3, 5), np.float32)
    word: Callable[[int], Any] = lambda place: ctypes.c_size_t.from_address(id(x) + place).value
    sizes = ctypes.c_ssize_t * 2
    return bool(
        (word(TYPE), word(DATA), word(DTYPE)) == (id(np.ndarray), x.ctypes.data, id(x.dtype))
        and ctypes.c_int.from_address(id(x) + AXES).value == 2
        and list(sizes.from_address(word(SHAPE))) == [3, 5]
        and ctypes.c_int.from_address(id(x) + FLAGS).value & 0x707 == x.flags.num & 0x707
        and x.flags.num & WANTED == WANTED
    )


@functools.cache
def _say_once() -> None:
    from importlib.util import find_spec

    if find_spec("llvmlite") is None:
        warnings.warn(
            "ad.compile makes no machine code without llvmlite: compiled functions call NumPy primitive by primitive; "
            'pip install "adjoint[compile]", or set ADJOINT_COMPILE=replay to have it so',
            RuntimeWarning,
            stacklevel=stack_level(),
        )


def possible() -> bool:
    """Whether machine code can be made in this process, and may be."""
    return setting() != "replay" and llvm() is not None


def wanted() -> bool:
    """Whether machine code is to be made for who asked to compile."""
    if not possible() and setting() != "replay":
        _say_once()
    return possible()


@functools.cache
def _features() -> Any:
    """What the processor can, by LLVM's names."""
    return llvm().get_host_cpu_features()


@functools.cache
def vector_bytes() -> int:
    """The size of a vector of the processor."""
    features = _features()
    return 64 if features.get("avx512f") else 32 if features.get("avx") else 16


@functools.cache
def has_avx512() -> bool:
    """Whether the processor has AVX-512 with vectors of all lengths."""
    features = _features()
    return bool(features.get("avx512f") and features.get("avx512vl"))


@functools.cache
def multiplies_twice() -> bool:
    """Whether it begins two multiplications of its longest vectors in a cycle, if these have 64 bytes.

    So do most of Intel's that have such vectors; AMD's, which alone know SSE4a, begin one before the fifth generation.
    """
    return vector_bytes() == 64 and not _features().get("sse4a")


@functools.cache
def registers() -> int:
    """How many vectors the processor holds at once."""
    return 32 if vector_bytes() == 64 or _is_arm() else 16


def is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")


def _is_arm() -> bool:
    return platform.machine().lower() in ("arm64", "aarch64")


@functools.cache
def adds_products() -> bool:
    """Whether the processor multiplies and adds with one rounding, as elementary functions do."""
    return bool(_features().get("fma")) or _is_arm()


class Machine:
    """Machine code ready to run, which lives as long as one of its functions."""

    def __init__(self, code: bytes) -> None:
        binding = llvm()
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _new_target())
        self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self._methods: dict[str, _Method] = {}

    def address(self, symbol: str) -> int:
        return self._engine.get_function_address(symbol)  # type: ignore[no-any-return]

    def function(self, symbol: str) -> Callable[..., bool]:
        """What Python calls: it takes arrays and gives whether they were as expected."""
        method = self._methods.get(symbol)
        if method is None:
            method = _Method(symbol.encode(), self.address(symbol), _FASTCALL, None)
            method = self._methods.setdefault(symbol, method)  # another thread may have been first
        make: Any = ctypes.pythonapi.PyCFunction_NewEx
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        return make(ctypes.addressof(method), self, None)  # type: ignore[no-any-return]  # which refers to self


def emitted(text: str) -> bytes:
    """The machine code of a text."""
    target = _new_target()  # which keeps half a megabyte of what it emitted: the engine gets another one
    return target.emit_object(_module(text, target))  # type: ignore[no-any-return]


def stored_or_emitted(text: str) -> bytes:
    """The same, if no earlier process has made it."""
    import hashlib

    from adjoint.compiler.native import stored

    key = hashlib.sha256(repr((text, processor())).encode()).hexdigest()
    code = stored.load(key)
    if code is None:
        code = emitted(text)
        stored.store(key, code)
    return code


def assembly(text: str) -> str:
    """The machine code of a text, for people to read."""
    target = _new_target()
    return str(target.emit_assembly(_module(text, target)))


def _module(text: str, target: Any, joins: bool = True) -> Any:
    """What LLVM reads in a text; `joins` has what the functions of a loop hand on in memory be in registers."""
    from adjoint.compiler.native.text import INLINE  # which code of an earlier process does without

    module = llvm().parse_assembly(text)
    module.verify()
    inlined = ") #1 {" in text
    if inlined or INLINE in text:
        _run(module, target, "always_inliner", "global_dead_code_eliminate")
    if inlined and joins:
        for _ in range(2):
            _run(module, target, "sroa")
            if not _is_sound(module):
                return _module(text, target, False)
            module = _with_inserted(module, text)
            _run(module, target, "instruction_combine", "new_gvn", "dead_store_elimination")
        if _VECTORS.search(text) is None:
            _vectorize(module, target)
    return module


def _run(module: Any, target: Any, *names: str) -> None:
    """Have LLVM run these passes."""
    binding = llvm()
    passes = binding.create_new_module_pass_manager()
    for name in names:
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, binding.create_pass_builder(target, binding.create_pipeline_tuning_options(2)))


def _is_sound(module: Any) -> bool:
    """Whether values are made before they are used: other passes and the emitter crash where they are not.

    SROA of LLVM 22 makes one vector of parts that are written in turn, and may do so before the last of them is made.
    """
    try:
        module.verify()
    except RuntimeError:
        return False
    return True


def _with_inserted(module: Any, text: str) -> Any:
    """The module without integers that are taken for a vector of one: of an element of that LLVM 22 makes a truncation
    to as many bits, which is none, and ends the process."""
    if _ONE_INTEGER not in text:
        return module
    changed, count = _AS_ONE.subn(r"insertelement <1 x \1> poison, \1 \2, i32 0", str(module))
    return llvm().parse_assembly(changed) if count else module


def processor() -> tuple[Any, ...]:
    """What machine code depends on beside the text, and the text beside its graph: the processor, and the versions."""
    asked = vector_bytes(), has_avx512(), multiplies_twice(), registers(), adds_products(), is_x86(), _is_arm()
    return (*_host(), *asked, integer_bits(), blas_is_narrow(), VERSION)


@functools.cache
def _host() -> tuple[Any, ...]:
    binding = llvm()
    features = _features().flatten()
    versions = importlib.import_module("llvmlite").__version__, binding.llvm_version_info
    return binding.get_process_triple(), binding.get_host_cpu_name(), features, *versions


def _vectorize(module: Any, target: Any) -> None:
    """Have LLVM put equal operations on several numbers into vectors: a loop of single numbers has none of ours."""
    binding = llvm()
    options = binding.create_pipeline_tuning_options(2)
    options.slp_vectorization = True
    builder = binding.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)


def _new_target() -> Any:
    """An engine owns its processor."""
    _, cpu, features, *_ = _host()
    return llvm().Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=2)
