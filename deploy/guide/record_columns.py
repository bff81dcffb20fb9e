"""Columns of a captioner of transformers: deploy/guide/bring-a-model.md."""

import torch
from PIL import Image
from transformers import AutoImageProcessor, AutoTokenizer, VisionEncoderDecoderModel

import prescore

NAME = "nlpconnect/vit-gpt2-image-captioning"  # or a folder
model = VisionEncoderDecoderModel.from_pretrained(NAME).eval()
processor = AutoImageProcessor.from_pretrained(NAME)
tokenizer = AutoTokenizer.from_pretrained(NAME, padding_side="right")
tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
size = model.config.decoder.vocab_size
tokens = [tokenizer.convert_ids_to_tokens(id) or "" for id in range(size)]

recorder = prescore.Recorder(
    "flickr8k/", "test", vocabulary=tokens, tokenizer="blanks", pieces="gpt2", model=NAME
)
for image, references in recorder.images():
    picture = Image.open(f"flickr8k/images/{image}").convert("RGB")
    texts = [f"{text}{tokenizer.eos_token}" for text in references]  # END is a token like others
    options = {"add_special_tokens": False, "return_offsets_mapping": True, "return_tensors": "pt"}
    given = tokenizer(texts, padding=True, **options)
    targets, is_real = given.input_ids, given.attention_mask.bool()  # END is real, padding is not
    read = targets.roll(1, dims=1)  # the model reads START and all tokens but the last
    read[:, 0] = model.config.decoder_start_token_id
    with torch.inference_mode():
        seen = model.encoder(processor(picture, return_tensors="pt").pixel_values)
        every = seen.last_hidden_state.repeat(len(texts), 1, 1)  # each image is looked at once
        logits = model(encoder_outputs=(every,), decoder_input_ids=read).logits
    for place, real in enumerate(is_real):
        offsets = given.offset_mapping[place, real]
        recorder.add(image, place, logits[place, real], targets[place, real], offsets=offsets)
recorder.write("model.columns.safetensors")

with prescore.Client() as client:
    columns = client.upload_columns("model.columns.safetensors")
    print(client.wait(client.submit("flickr8k/test", columns=columns).id).scores)
