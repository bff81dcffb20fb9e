"""The guide's program for a captioner of transformers, with a tiny model of random weights."""

import pytest
import torch
from safetensors.torch import load_file

from helpers.contract_files import line, tar, tar_entry
from helpers.documents import read
from prescore.recording import words
from service.contract.formats import bundles, columns_values
from service.contract.formats.bundles import BundleItem

PAGE = "deploy/guide/record_columns.py"
NAME = "nlpconnect/vit-gpt2-image-captioning"
ITEMS = (
    BundleItem("a.jpg", "test", ("Two dogs, one naïve cat.", "a dog")),
    BundleItem("other.jpg", "train", ("a dog",)),
    BundleItem("b.jpg", "test", ("x", "a child plays \u2026 with 2 dogs 🐕", "the dog")),
)

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A bundle with images, in the folder in which the program runs."""
    images = pytest.importorskip("PIL.Image", reason="the page's program opens images with pillow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # read when transformers is imported
    bundles.write_bundle_folder(tmp_path / "flickr8k", ITEMS)
    (tmp_path / "flickr8k/images").mkdir()
    for place, item in enumerate(ITEMS):
        picture = images.new("RGB", (20 + place, 10), (50 * place, 90, 200))
        picture.save(tmp_path / "flickr8k/images" / item.image)
    return tmp_path


@pytest.fixture
def captioner(folder):
    """A captioner with random weights, its tokenizer of pieces and its way of reading images."""
    transformers = pytest.importorskip("transformers", reason="the page is about transformers")
    size = 300
    torch.manual_seed(0)
    model = transformers.VisionEncoderDecoderModel(
        encoder=transformers.ViTModel(
            transformers.ViTConfig(
                hidden_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=16,
                image_size=8,
                patch_size=4,
            )
        ),
        decoder=transformers.GPT2LMHeadModel(
            transformers.GPT2Config(
                vocab_size=size + 4,  # more rows than the tokenizer has tokens
                n_positions=64,
                n_embd=16,
                n_layer=1,
                n_head=2,
                add_cross_attention=True,
                initializer_range=0.8,
            )
        ),
    )
    tokenizer = _tokenizer(transformers, size)
    end = tokenizer.eos_token_id
    model.config.decoder_start_token_id = model.config.pad_token_id = end
    model.save_pretrained(folder / NAME)
    tokenizer.save_pretrained(folder / NAME)
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    ViTImageProcessorPil(size={"height": 8, "width": 8}).save_pretrained(folder / NAME)
    return model.eval()


def _tokenizer(transformers, size):
    from tokenizers import ByteLevelBPETokenizer

    trained = ByteLevelBPETokenizer()
    texts = [text for item in ITEMS for text in item.references]
    trained.train_from_iterator(texts, size, min_frequency=1, special_tokens=["<|endoftext|>"])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=trained._tokenizer, eos_token="<|endoftext|>"
    )


@pytest.fixture
def service(serve_here, folder, monkeypatch):
    with serve_here(folder / "home") as running:
        monkeypatch.setenv("PRESCORE_URL", running.url)
        monkeypatch.delenv("PRESCORE_KEY", raising=False)
        with running.client() as client:
            lines = [line(each.image, each.references, split=each.split) for each in ITEMS]
            content = tar(tar_entry(b"captions.jsonl", b"".join(lines)))
            assert client.put("/v1/datasets/flickr8k", content=content).status_code == 201
        yield running


@pytest.mark.filterwarnings("ignore")  # of other people's packages
def test_the_pages_program_records_what_the_library_computes(folder, captioner, service, capsys):
    scope = {}
    exec(compile(read(PAGE), PAGE, "exec"), scope)  # noqa: S102  our own document
    assert "perplexity" in capsys.readouterr().out
    found = load_file(folder / "model.columns.safetensors")
    expected = [
        each
        for item in ITEMS
        if item.split == "test"
        for reference in item.references
        for each in _cross_entropies(scope, item.image, words.join_words(reference, "blanks"))
    ]
    torch.testing.assert_close(-found["logp"], torch.tensor(expected), atol=1e-4, rtol=0)
    assert len(set(found["rank"].tolist())) > 5
    header = columns_values.validate_columns(folder / "model.columns.safetensors")
    assert (header.model, header.pieces, header.tokenizer) == (NAME, "gpt2", "blanks")


def _cross_entropies(scope, image, reference):
    """The library's own loss of each token alone, of one reference without padding."""
    model, tokenizer = scope["model"], scope["tokenizer"]
    picture = scope["Image"].open(f"flickr8k/images/{image}").convert("RGB")
    pixels = scope["processor"](picture, return_tensors="pt").pixel_values
    labels = torch.tensor([[*tokenizer(reference).input_ids, tokenizer.eos_token_id]])
    start = torch.tensor([[model.config.decoder_start_token_id]])
    read = torch.cat([start, labels[:, :-1]], dim=1)
    for place in range(labels.shape[1]):
        alone = torch.full_like(labels, -100)
        alone[0, place] = labels[0, place]
        with torch.inference_mode():
            yield model(pixel_values=pixels, decoder_input_ids=read, labels=alone).loss.item()
