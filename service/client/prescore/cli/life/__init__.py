"""Commands that change and delete what the service keeps."""
