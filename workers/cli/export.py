"""`prescore export`: an ONNX bundle of a captioner in PyTorch, written where the captioner is."""

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from service.contract.errors import RequestRefused
from service.contract.formats import bundles
from service.contract.formats.bundles.features import check_features_fit
from service.contract.formats.checkpoint_header import FeatureEncoder
from workers.cli.console import folder_to_write, print_lines, report_errors, show_progress_steps


def export(
    function: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="A function of yours without arguments; it returns a `workers.export.Captioner`.",
        ),
    ],
    out: Annotated[
        Path, folder_to_write("The bundle to write: a new or empty folder.", of=typer.Option)
    ],
    dataset: Annotated[
        Path | None,
        typer.Option(help="A bundle with the image features that the model was trained on."),
    ] = None,
) -> None:
    """Write a captioner of PyTorch as an ONNX bundle, and check it against its own modules.

    Runs your code here; what is written holds none of it. Needs onnx and onnxscript:
    deploy/guide/bring-a-model.md says what to install.

        prescore export mine:captioner --out bundle/ --dataset flickr8k/
    """
    with report_errors(), show_progress_steps() as steps:
        steps.begin("torch")
        from workers.export import bundle_writer
        from workers.export.captioner import ExportedCaptioner

        bundle_writer.check_packages()
        steps.begin(function)
        given = _found(function)()
        if not isinstance(given, ExportedCaptioner):
            raise RequestRefused(
                f"{function}: expected it to return a workers.export.Captioner, "
                f"found {type(given).__name__}"
            )
        bundle = bundle_writer.write_bundle(
            out, given, _encoder(dataset, given.feature_size), steps.begin
        )
    print_lines(
        f"{out}: {bundle.size:,} {bundle.manifest.units}, {bundle.parameters:,} parameters; "
        "its graphs compute what the modules do"
    )


def _found(function: str) -> Any:
    module, _, name = function.partition(":")
    if not module or not name:
        raise RequestRefused(f"expected MODULE:FUNCTION, found {function!r:.100}")
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise RequestRefused(
            f"expected a module {module!r:.100} in this folder, found none"
        ) from None
    if not callable(found):
        raise RequestRefused(f"{module}: expected a function {name!r:.100}, found none")
    return found


def _encoder(dataset: Path | None, size: int | None) -> FeatureEncoder | None:
    """Raises RequestRefused where its features have another size. `size`: None for pictures."""
    features = None if dataset is None else bundles.read_features_header(dataset)
    if dataset is not None and features is None:
        raise RequestRefused(f"{dataset}: expected a dataset bundle with {bundles.FEATURES}")
    if features is not None and size is not None:
        check_features_fit(features, size)
    return None if features is None else features.encoder
