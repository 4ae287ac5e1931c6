"""Looplets: how a fiber reads along its index (Ahrens et al., "Looplets", CGO 2023)."""

from pyfinch.looplets.looplets import Emitter, Fiber, Lookup, Looplet, Spike, Stepper

__all__ = ["Emitter", "Fiber", "Lookup", "Looplet", "Spike", "Stepper"]
