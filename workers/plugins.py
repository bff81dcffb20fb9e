"""What a plug-in may import of Prescore: deploy/guide/plugins.md. All else may change."""

from workers.inference.features import Inputs
from workers.inference.features import read as features
from workers.inference.matrix_products import Product
from workers.inference.packing import Packed
from workers.inference.plugins.base import Captioner, Description
from workers.inference.plugins.guarding import Refused
from workers.inference.vocabulary import Tokens, Words

__all__ = [
    "Captioner",
    "Description",
    "Inputs",
    "Packed",
    "Product",
    "Refused",
    "Tokens",
    "Words",
    "features",
]
