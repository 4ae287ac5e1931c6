"""Lowering: a scheduled Logic plan becomes one loop program a query."""

from pyfinch.lowering.plan import LoopPlan, Step, lower_plan

__all__ = ["LoopPlan", "Step", "lower_plan"]
