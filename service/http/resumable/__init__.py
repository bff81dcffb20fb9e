"""Uploads that go on after a cut: the IETF's draft (Resumable Uploads for HTTP) and tus 1.0 on the
same URLs. A request with `Tus-Resumable` speaks tus.
"""
