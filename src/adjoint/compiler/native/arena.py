"""The arena of a call, where its intermediate results lie: on the stack if they are small, else a piece of the heap.

The piece of the last call is kept for the next, of whatever program: to have the system make new pages takes longer
than to compute what is in them. Of a new piece there is more than is asked for, so that somewhat larger sizes find room
as well; what nobody writes to has no pages. Who takes or gives back a piece holds the interpreter's lock.
"""

from __future__ import annotations

import ctypes

ON_STACK = 1 << 15  # bytes
KEPT = 1 << 27  # bytes of a piece that is kept

spare = ctypes.c_void_p()  # where the piece begins that is kept, if any; how many bytes it has is written before it

HEAP = f"""@adjoint_spare = external global ptr
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
declare ptr @PyErr_NoMemory()

; memory of so many bytes: what there is on the stack, or a piece; null if there is none
define internal ptr @allocate(i64 %bytes, ptr %stack) #0 {{
entry:
  %few = icmp ule i64 %bytes, {ON_STACK}
  br i1 %few, label %near, label %far
near:
  ret ptr %stack
far:
  %spare = load ptr, ptr @adjoint_spare, align 8
  %none = icmp eq ptr %spare, null
  br i1 %none, label %makes, label %looks
looks:
  store ptr null, ptr @adjoint_spare, align 8
  %s0 = getelementptr i64, ptr %spare, i64 -1
  %s1 = load i64, ptr %s0, align 8
  %fits = icmp uge i64 %s1, %bytes
  br i1 %fits, label %found, label %drops
found:
  ret ptr %spare
drops:
  call void @release(ptr %spare)
  br label %makes
makes:
  %small = icmp ule i64 %bytes, {KEPT}
  %m0 = lshr i64 %bytes, 1
  %more = select i1 %small, i64 %m0, i64 0
  %size = add i64 %bytes, %more
  %m1 = add i64 %size, 128
  %whole = call ptr @PyMem_RawMalloc(i64 %m1)
  %fails = icmp eq ptr %whole, null
  br i1 %fails, label %missing, label %made
missing:
  ret ptr null
made:
  %a0 = ptrtoint ptr %whole to i64
  %a1 = add i64 %a0, 127
  %a2 = and i64 %a1, -64
  %piece = inttoptr i64 %a2 to ptr
  %p0 = getelementptr i64, ptr %piece, i64 -1
  store i64 %size, ptr %p0, align 8
  %p1 = getelementptr ptr, ptr %piece, i64 -2
  store ptr %whole, ptr %p1, align 8
  ret ptr %piece
}}

define internal void @release(ptr %piece) #0 {{
entry:
  %place = getelementptr ptr, ptr %piece, i64 -2
  %whole = load ptr, ptr %place, align 8
  call void @PyMem_RawFree(ptr %whole)
  ret void
}}

; have the next call find a piece, unless there is one
define internal void @keep(ptr %piece, ptr %stack) #0 {{
entry:
  %near = icmp eq ptr %piece, %stack
  br i1 %near, label %ends, label %far
ends:
  ret void
far:
  %spare = load ptr, ptr @adjoint_spare, align 8
  %none = icmp eq ptr %spare, null
  %place = getelementptr i64, ptr %piece, i64 -1
  %size = load i64, ptr %place, align 8
  %small = icmp ule i64 %size, {KEPT}
  %both = and i1 %none, %small
  br i1 %both, label %stays, label %goes
stays:
  store ptr %piece, ptr @adjoint_spare, align 8
  ret void
goes:
  call void @release(ptr %piece)
  ret void
}}"""
