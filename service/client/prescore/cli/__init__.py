"""The client's commands, a file for each; `prescore.commands` puts them together."""
