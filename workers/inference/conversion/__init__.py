"""Files of other programs, converted to safetensors in the sandbox."""
