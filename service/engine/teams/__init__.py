"""Teams: whose rows a connection may see."""
