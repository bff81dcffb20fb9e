"""`Refused`: why a token is not exchanged. The log alone is told; who sent it hears one answer."""


class Refused(Exception):
    """`because`: for the operator, with nothing of the token's own but what was checked."""

    def __init__(self, because: str) -> None:
        super().__init__(because)
        self.because = because
