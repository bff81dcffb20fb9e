"""The search for the one sentence that scores highest as the caption of every image."""
