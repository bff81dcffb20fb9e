"""Captioners that transformers has saved (`save_pretrained`): its networks, our own loops."""
