"""The commands, one per file; each defines a click command named `command` and imports heavy modules late.
