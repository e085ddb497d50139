"""The commands, one per file; each defines a click command `command` and imports heavy modules late."""
