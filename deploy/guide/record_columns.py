"""Columns of a chat model of transformers: deploy/guide/bring-a-model.md."""

import torch
from PIL import Image
from transformers import AutoModelForImageTextToText, AutoProcessor

import prescore

NAME = "llava-hf/llava-1.5-7b-hf"  # or a folder
model = AutoModelForImageTextToText.from_pretrained(NAME).eval()
processor = AutoProcessor.from_pretrained(NAME)
tokenizer = processor.tokenizer
content = [{"type": "image"}, {"type": "text", "text": "Describe the image in one sentence."}]
chat = [{"role": "user", "content": content}]
prompt = processor.apply_chat_template(chat, add_generation_prompt=True)
size = model.get_output_embeddings().out_features  # more than the tokenizer has tokens
tokens = [tokenizer.convert_ids_to_tokens(id) or "" for id in range(size)]
how = {"add_special_tokens": False, "return_offsets_mapping": True, "return_tensors": "pt"}

# "blanks" leaves capital letters and signs as they are: this tokenizer knows them.
recorder = prescore.Recorder("flickr8k/", vocabulary=tokens, tokenizer="blanks", pieces="llava")
with torch.inference_mode():
    for image, references in recorder.images():
        picture = Image.open(f"flickr8k/images/{image}").convert("RGB")
        seen = processor(images=picture, text=prompt, return_tensors="pt")
        before = seen.input_ids
        for place, text in enumerate(references):
            found = tokenizer(text + tokenizer.eos_token, **how)  # END is a token like others
            ids, offsets = found.input_ids, found.offset_mapping[0]
            read = torch.cat([before, ids], dim=1)
            logits = model(input_ids=read, pixel_values=seen.pixel_values).logits[0]
            logits = logits[before.shape[1] - 1 : -1]  # the row before a token predicts it
            recorder.add(image, place, logits, ids[0], offsets=offsets)
recorder.write("model.columns.safetensors")
