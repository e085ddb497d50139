"""The commands, one a file; each holds a click command named `command` and imports heavy things late."""
