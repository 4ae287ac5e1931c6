"""The autoscheduler: one file a pass, `pipeline` names their order."""
