"""/v1/uploads: files that arrive in several requests and go on after a cut, by tus 1.0."""
