"""The one sentence that scores highest when it answers every image."""
