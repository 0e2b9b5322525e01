"""Layers and losses as modules; `adjoint.nn` lists them."""
