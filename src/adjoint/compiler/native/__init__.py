"""Native code of compiled functions: LLVM IR as text, from which llvmlite makes machine code (adjoint[compile])."""
