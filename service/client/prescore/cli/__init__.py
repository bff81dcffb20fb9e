"""The client's commands: one short file each; `prescore.commands` puts them together."""
