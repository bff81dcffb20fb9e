"""What a map's layers become: a captioner's config and tensors, a file for each kind of map."""
