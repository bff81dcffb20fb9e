"""Options of a search for captions, of a folder's generation_config.json."""

from service.contract.formats.huggingface import TransformersCaptioner
from workers.inference.captioners import GenerationOptions


def make_search(
    judged: TransformersCaptioner, end: int, longest: int, before: tuple[int, ...] = ()
) -> GenerationOptions:
    """Make options of a search by a folder's settings. Captions end where the model has no more
    positions (`longest`). `before`: the prompt.
    """
    found, most = judged.generation, min(judged.longest, longest)
    return GenerationOptions(
        beams=found.num_beams,
        most=most,
        least=min(found.least, most),
        length_penalty=found.length_penalty,
        early_stopping=found.early_stopping,
        forced_first=found.forced_bos_token_id,
        forced_last=found.forced_eos_token_id,
        never=tuple(found.suppress_tokens or ()),
        never_first=tuple(found.begin_suppress_tokens or ()),
        repetition_penalty=found.repetition_penalty,
        no_repeat_ngram=found.no_repeat_ngram_size,
        longest=longest,
        other_ends=tuple(each for each in judged.ends if each != end),
        before=before,
    )
