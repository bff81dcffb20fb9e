"""Names that a plug-in may import of Prescore (deploy/guide/plugins-and-sandbox.md). All else may
change.
"""

from workers.inference.devices import Product
from workers.inference.features import Inputs
from workers.inference.features import read_features as features
from workers.inference.packing import Packed
from workers.inference.plugins.base import CaptionerBase as Captioner
from workers.inference.plugins.base import CaptionerDescription as Description
from workers.inference.plugins.registry import PluginRefusal as Refused
from workers.inference.vocabulary import CaptionerTokens as Tokens
from workers.inference.vocabulary import WordTokens as Words

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
