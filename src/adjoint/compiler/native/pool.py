"""Threads that help with the parts of a loop.

A loop is cut into parts by its shape alone, so results do not depend on who computes which. `adjoint_parallel` offers
the parts of one loop; the calling thread and workers take the next one each, until none is left. It never waits for a
worker to begin, only for those that have begun to end: without any worker it computes all parts. Who calls while
another thread's loop is offered computes alone.

Workers are threads of Python that are in machine code, without the interpreter's lock. One that finds nothing to do
looks again for a part of a millisecond and then sleeps at a lock of its own, one of Python's, which is there on all
systems. Before a fork they end, and the next loop of either process begins new ones.

A loop takes longer than alone where other programs have all cores. If that is more than one part in `_REST`, loops run
alone until `_REST` times as long as what was lost has passed. So trying costs little. A worker that finds itself on the
caller's processor has its time from the caller: it goes to another one, where systems begin it again from then on. If
there is none it sleeps at once, and loops run alone for `_ASIDE` cycles.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import platform
import sys
import threading
from typing import Any

from adjoint import locks
from adjoint.compiler.native.machine import Machine, llvm, stored_or_emitted
from adjoint.compiler.threads import get_num_threads

_WORKERS = 255  # at most
_WAITS = 1500  # how often the caller looks for the end before it sleeps: some 50 microseconds
_SPINS = 2000  # how often a worker looks for the next loop: some 100 microseconds, more than there are between two
_REST = 8
_ASIDE = 1 << 22  # some milliseconds

# Where the words of the state are. What different threads write is 64 bytes apart.
_READY, _COUNT, _STOP, _BUSY, _OPEN, _ACTIVE, _NEXT = 0, 8, 64, 128, 192, 256, 320
_PART, _DATA, _PARTS, _NUMBER = 384, 392, 400, 408  # of the loop that is offered
_WAITING, _DONE, _UNTIL, _HELPED, _PLACE = 448, 456, 512, 520, 528
_OWN = 576  # from here on for each worker whether it sleeps, and its lock

_lock = locks.lock()
_threads: list[threading.Thread] = []
_ended = False  # the interpreter is ending
_stopping = False  # so a handler of a signal, which may run meanwhile, computes alone


def _at(place: int) -> str:
    return f"getelementptr (i8, ptr @adjoint_pool, i64 {place})"


def _text() -> str:
    machine, read = platform.machine().lower(), "@llvm.read_volatile_register.i64(metadata"
    clock, pause = "@llvm.readcyclecounter()", "@llvm.donothing()"
    declared = ["declare i64 @llvm.readcyclecounter()", "declare void @llvm.donothing()"]
    if machine in ("arm64", "aarch64"):  # a program may not read its counter of cycles
        clock, pause = f"{read} !0)", "@llvm.aarch64.hint(i32 1)"
        declared = [f"declare i64 {read})", "declare void @llvm.aarch64.hint(i32)", '!0 = !{!"cntvct_el0"}']
    elif machine in ("x86_64", "amd64"):
        pause = "@llvm.x86.sse2.pause()"
        declared += ["declare void @llvm.x86.sse2.pause()"]
    place = "add i32 0, -1"  # not known
    goes = "define internal i1 @leave(i32 %here) #0 {\n  ret i1 0\n}"
    if sys.platform == "linux":
        place, goes = "call i32 @sched_getcpu()", _LEAVE
        declared += [
            "declare i32 @sched_getcpu()",
            "declare i32 @sched_getaffinity(i32, i64, ptr)",
            "declare i32 @sched_setaffinity(i32, i64, ptr)",
        ]
    lines = "\n".join(declared)
    return f"""
@adjoint_pool = external global i8
declare i32 @PyThread_acquire_lock(ptr, i32)
declare void @PyThread_release_lock(ptr)
{lines}

; compute the parts of a loop, with help
define void @adjoint_parallel(ptr %part, ptr %data, i64 %parts) #0 {{
entry:
  %count = load atomic i64, ptr {_at(_COUNT)} monotonic, align 8
  %none = icmp eq i64 %count, 0
  br i1 %none, label %alone, label %asks
asks:
  %until = load atomic i64, ptr {_at(_UNTIL)} monotonic, align 8
  %now = call i64 {clock}
  %rests = icmp slt i64 %now, %until
  br i1 %rests, label %alone, label %tries
tries:
  %b0 = cmpxchg ptr {_at(_BUSY)}, i64 0, i64 1 seq_cst seq_cst
  %b1 = extractvalue {{ i64, i1 }} %b0, 1
  br i1 %b1, label %offers, label %alone
alone:
  call void @alone(ptr %part, ptr %data, i64 %parts)
  ret void
offers:
  %t0 = call i64 {clock}
  store ptr %part, ptr {_at(_PART)}, align 8
  store ptr %data, ptr {_at(_DATA)}, align 8
  store i64 %parts, ptr {_at(_PARTS)}, align 8
  %n0 = load i64, ptr {_at(_NUMBER)}, align 8
  %n1 = add i64 %n0, 1
  store i64 %n1, ptr {_at(_NUMBER)}, align 8
  %place = {place}
  store atomic i32 %place, ptr {_at(_PLACE)} monotonic, align 8
  store atomic i64 0, ptr {_at(_NEXT)} seq_cst, align 8
  store atomic i64 %n1, ptr {_at(_OPEN)} seq_cst, align 8
  %others = sub i64 %parts, 1
  %fewer = icmp ult i64 %others, %count
  %wanted = select i1 %fewer, i64 %others, i64 %count
  call void @wake(i64 %wanted)
  %t1 = call i64 {clock}
  %mine = call i64 @take(ptr %part, ptr %data, i64 %parts, i1 0)
  %t2 = call i64 {clock}
  store atomic i64 0, ptr {_at(_OPEN)} seq_cst, align 8
  br label %wait
wait:
  %k = phi i64 [ 0, %offers ], [ %k1, %again ], [ 0, %sleep ]
  %left = load atomic i64, ptr {_at(_ACTIVE)} seq_cst, align 8
  %over = icmp eq i64 %left, 0
  br i1 %over, label %ends, label %turns
turns:
  %k1 = add i64 %k, 1
  %long = icmp ugt i64 %k1, {_WAITS}
  br i1 %long, label %tires, label %again
again:
  call void {pause}
  br label %wait
tires:
  store atomic i64 1, ptr {_at(_WAITING)} seq_cst, align 8
  %left2 = load atomic i64, ptr {_at(_ACTIVE)} seq_cst, align 8
  %over2 = icmp eq i64 %left2, 0
  br i1 %over2, label %wakes, label %sleep
wakes:
  %w0 = cmpxchg ptr {_at(_WAITING)}, i64 1, i64 0 seq_cst seq_cst
  %w1 = extractvalue {{ i64, i1 }} %w0, 1
  br i1 %w1, label %ends, label %sleep
sleep:
  %done = load ptr, ptr {_at(_DONE)}, align 8
  call i32 @PyThread_acquire_lock(ptr %done, i32 1)
  br label %wait
ends:
  %t3 = call i64 {clock}
  %whole = sub i64 %t3, %t0
  %own = sub i64 %t2, %t1
  ; alone it would have taken own * parts / mine
  %full = mul i64 %own, %parts
  %safe = call i64 @llvm.umax.i64(i64 %mine, i64 1)
  %single = udiv i64 %full, %safe
  %lost = sub i64 %whole, %single
  %owed = mul i64 %lost, {_REST}
  %much = icmp sgt i64 %owed, %whole
  %some = icmp ne i64 %mine, 0
  %bad = and i1 %much, %some
  br i1 %bad, label %owes, label %leaves
owes:
  %until1 = add i64 %t3, %owed
  store atomic i64 %until1, ptr {_at(_UNTIL)} monotonic, align 8
  br label %leaves
leaves:
  store atomic i64 0, ptr {_at(_BUSY)} seq_cst, align 8
  ret void
}}
declare i64 @llvm.umax.i64(i64, i64)

define internal void @alone(ptr %part, ptr %data, i64 %parts) #0 {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i1, %head ]
  call void %part(ptr %data, i64 %i)
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %parts
  br i1 %more, label %head, label %out
out:
  ret void
}}

; compute parts until none is left, or this thread is to end; gives how many
define internal i64 @take(ptr %part, ptr %data, i64 %parts, i1 %ends) #0 {{
entry:
  br label %head
head:
  %mine = phi i64 [ 0, %entry ], [ %mine1, %body ]
  %i = atomicrmw add ptr {_at(_NEXT)}, i64 1 seq_cst
  %more = icmp ult i64 %i, %parts
  br i1 %more, label %body, label %out
body:
  call void %part(ptr %data, i64 %i)
  %mine1 = add i64 %mine, 1
  %s = load atomic i64, ptr {_at(_STOP)} monotonic, align 8
  %s1 = icmp ne i64 %s, 0
  %leaves = and i1 %s1, %ends
  br i1 %leaves, label %out, label %head
out:
  %found = phi i64 [ %mine, %head ], [ %mine1, %body ]
  ret i64 %found
}}

; so many of the workers, if they sleep
define internal void @wake(i64 %count) #0 {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %out
body:
  %far = mul i64 %i, 64
  %own = getelementptr i8, ptr {_at(_OWN)}, i64 %far
  %p0 = cmpxchg ptr %own, i64 1, i64 0 seq_cst seq_cst
  %p1 = extractvalue {{ i64, i1 }} %p0, 1
  br i1 %p1, label %free, label %next
free:
  %at = getelementptr i8, ptr %own, i64 8
  %lock = load ptr, ptr %at, align 8
  call void @PyThread_release_lock(ptr %lock)
  br label %next
next:
  %i1 = add i64 %i, 1
  br label %head
out:
  ret void
}}

define void @adjoint_stop(i64 %count) #0 {{
entry:
  store atomic i64 1, ptr {_at(_STOP)} seq_cst, align 8
  call void @wake(i64 %count)
  ret void
}}

; what a worker does until it is to end
define void @adjoint_work(i64 %index) #0 {{
entry:
  %far = mul i64 %index, 64
  %own = getelementptr i8, ptr {_at(_OWN)}, i64 %far
  %at = getelementptr i8, ptr %own, i64 8
  %lock = load ptr, ptr %at, align 8
  br label %head
head:
  %last = phi i64 [ 0, %entry ], [ %last, %again ], [ %last, %meets ], [ %known, %wakes ],
    [ %known, %sleep ], [ %last1, %left ]
  %k = phi i64 [ 0, %entry ], [ %k1, %again ], [ 0, %wakes ], [ 0, %sleep ], [ 0, %left ], [ %k, %meets ]
  %stop = load atomic i64, ptr {_at(_STOP)} seq_cst, align 8
  %stops = icmp ne i64 %stop, 0
  br i1 %stops, label %out, label %looks
looks:
  %place = load atomic i32, ptr {_at(_PLACE)} monotonic, align 8
  %here = {place}
  %same = icmp eq i32 %here, %place
  %sure = icmp sge i32 %here, 0
  %takes = and i1 %same, %sure
  br i1 %takes, label %meets, label %asks
meets:
  %left2 = call i1 @leave(i32 %here)
  br i1 %left2, label %head, label %aside
aside:
  %now = call i64 {clock}
  %until = add i64 %now, {_ASIDE}
  store atomic i64 %until, ptr {_at(_UNTIL)} monotonic, align 8
  %seen = load atomic i64, ptr {_at(_OPEN)} seq_cst, align 8
  br label %tires
asks:
  %new = call i1 @offered(i64 %last)
  br i1 %new, label %enters, label %turns
turns:
  %k1 = add i64 %k, 1
  %long = icmp ugt i64 %k1, {_SPINS}
  br i1 %long, label %tires, label %again
again:
  call void {pause}
  br label %head
tires:
  %known = phi i64 [ %last, %turns ], [ %seen, %aside ]
  store atomic i64 1, ptr %own seq_cst, align 8
  %new2 = call i1 @offered(i64 %known)
  %stop2 = load atomic i64, ptr {_at(_STOP)} seq_cst, align 8
  %stops2 = icmp ne i64 %stop2, 0
  %up = or i1 %new2, %stops2
  br i1 %up, label %wakes, label %sleep
wakes:
  %p0 = cmpxchg ptr %own, i64 1, i64 0 seq_cst seq_cst
  %p1 = extractvalue {{ i64, i1 }} %p0, 1
  br i1 %p1, label %head, label %sleep
sleep:
  call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  br label %head
enters:
  %a0 = atomicrmw add ptr {_at(_ACTIVE)}, i64 1 seq_cst
  %job = load atomic i64, ptr {_at(_OPEN)} seq_cst, align 8
  %closed = icmp eq i64 %job, 0
  br i1 %closed, label %leaves, label %works
works:
  %part = load ptr, ptr {_at(_PART)}, align 8
  %data = load ptr, ptr {_at(_DATA)}, align 8
  %parts = load i64, ptr {_at(_PARTS)}, align 8
  %mine = call i64 @take(ptr %part, ptr %data, i64 %parts, i1 1)
  %h = atomicrmw add ptr {_at(_HELPED)}, i64 %mine monotonic
  br label %leaves
leaves:
  %last1 = phi i64 [ %last, %enters ], [ %job, %works ]
  %a1 = atomicrmw sub ptr {_at(_ACTIVE)}, i64 1 seq_cst
  %was = icmp eq i64 %a1, 1
  br i1 %was, label %tells, label %left
tells:
  %w0 = cmpxchg ptr {_at(_WAITING)}, i64 1, i64 0 seq_cst seq_cst
  %w1 = extractvalue {{ i64, i1 }} %w0, 1
  br i1 %w1, label %frees, label %left
frees:
  %done = load ptr, ptr {_at(_DONE)}, align 8
  call void @PyThread_release_lock(ptr %done)
  br label %left
left:
  br label %head
out:
  ret void
}}

; have this thread go to another processor; gives whether there is one
{goes}

; whether there is a loop that this worker does not know
define internal i1 @offered(i64 %last) #0 {{
entry:
  %job = load atomic i64, ptr {_at(_OPEN)} seq_cst, align 8
  %some = icmp ne i64 %job, 0
  %other = icmp ne i64 %job, %last
  %new = and i1 %some, %other
  ret i1 %new
}}
attributes #0 = {{ nounwind }}
"""


_LEAVE = """
define internal i1 @leave(i32 %here) #0 {
entry:
  %mask = alloca [128 x i8], align 8
  %got = call i32 @sched_getaffinity(i32 0, i64 128, ptr %mask)
  %known = icmp eq i32 %got, 0
  %small = icmp ult i32 %here, 1024
  %can = and i1 %known, %small
  br i1 %can, label %tries, label %stays
tries:
  %byte = lshr i32 %here, 3
  %at = getelementptr i8, ptr %mask, i32 %byte
  %old = load i8, ptr %at, align 1
  %low = and i32 %here, 7
  %bit = shl nuw i32 1, %low
  %bit8 = trunc i32 %bit to i8
  %others = xor i8 %bit8, -1
  %new = and i8 %old, %others
  store i8 %new, ptr %at, align 1
  %went = call i32 @sched_setaffinity(i32 0, i64 128, ptr %mask)
  store i8 %old, ptr %at, align 1
  %back = call i32 @sched_setaffinity(i32 0, i64 128, ptr %mask)
  %moved = icmp eq i32 %went, 0
  ret i1 %moved
stays:
  ret i1 0
}
"""

DECLARED = "declare void @adjoint_parallel(ptr, ptr, i64)"

_memory = (ctypes.c_char * (_OWN + 64 * _WORKERS + 64))()
_state = -(-ctypes.addressof(_memory) // 64) * 64


def _word(place: int) -> Any:
    return ctypes.c_size_t.from_address(_state + place)


def _new_lock() -> int:
    """A lock of Python's that is held."""
    allocate, acquire = ctypes.pythonapi.PyThread_allocate_lock, ctypes.pythonapi.PyThread_acquire_lock
    allocate.restype, acquire.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int]
    made: int = allocate()
    acquire(made, 1)
    return made


@functools.cache
def link() -> Any:
    """The machine code of all this, under names that other machine code may use."""
    binding = llvm()
    binding.add_symbol("adjoint_pool", _state)
    binding.add_symbol("adjoint_begin", id(begin))
    for name in ("PyThread_acquire_lock", "PyThread_release_lock", "PyObject_CallNoArgs", "Py_DecRef"):
        binding.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
    made = Machine(stored_or_emitted(_text()))
    binding.add_symbol("adjoint_parallel", made.address("adjoint_parallel"))
    _word(_DONE).value = _new_lock()
    atexit.register(_end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=stop, after_in_child=_reset)
    return made


def _native(name: str) -> Any:
    return ctypes.CFUNCTYPE(None, ctypes.c_int64)(link().address(name))


def begin() -> None:
    """Begin workers; machine code calls this before a loop if there are none."""
    with _lock:
        if _word(_READY).value or _stopping:
            return
        stop()
        work = _native("adjoint_work")
        for i in range(0 if _ended else min(get_num_threads() - 1, _WORKERS)):
            own = _OWN + 64 * i
            if not _word(own + 8).value:  # else it is that of an earlier worker, which left it held
                _word(own + 8).value = _new_lock()
            thread = threading.Thread(target=work, args=(i,), name=f"adjoint {i + 1}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads can be had
                break
            _threads.append(thread)
        _word(_UNTIL).value, _word(_PLACE).value = 0, -1  # nobody has called
        _word(_COUNT).value = len(_threads)
        _word(_READY).value = 1


def stop() -> None:
    """End all workers, after the part of a loop that each is at; the next loop begins new ones."""
    global _stopping
    with _lock:
        _word(_READY).value = _word(_COUNT).value = 0
        if not _threads or _stopping:
            return
        _stopping = True
        try:
            _native("adjoint_stop")(len(_threads))
            while _threads:
                _threads[-1].join()
                _threads.pop()
            _word(_STOP).value = 0
        finally:
            _stopping = False


def helped() -> int:
    """How many parts workers have computed so far."""
    found: int = _word(_HELPED).value
    return found


def _end() -> None:
    global _ended
    _ended = True
    stop()


def _reset() -> None:
    """In a forked process there are no workers, nor a thread of before whose loop was offered."""
    global _stopping
    _stopping = False
    _threads.clear()
    ctypes.memset(_state, 0, _OWN + 64 * _WORKERS)
    _word(_DONE).value = _new_lock()
