"""CIDEr-D by its definition, with document frequencies of any corpus; the table of common words."""

import math
from collections import Counter


def ngrams(text):
    words = text.split()
    return Counter(
        tuple(words[start : start + n]) for n in (1, 2, 3, 4) for start in range(len(words) - n + 1)
    )


def count_images(people):
    """In how many images each n-gram occurs."""
    return Counter(
        ngram for image in people for ngram in {each for text in image for each in ngrams(text)}
    )


def cider_d(captions, people, documents):
    """Clipped counts, a penalty on the difference in bigrams, times ten. `documents`: the images in
    which n-grams are counted.
    """
    held, images = count_images(documents), len(documents)

    def vectors(text):
        found = [{}, {}, {}, {}]
        for ngram, count in ngrams(text).items():
            idf = math.log(images) - math.log(max(1, held[ngram]))
            found[len(ngram) - 1][ngram] = count * idf
        return found

    def similarity(own, theirs):
        norms = math.hypot(*own.values()) * math.hypot(*theirs.values())
        product = math.fsum(
            min(value, theirs[ngram]) * theirs[ngram]
            for ngram, value in own.items()
            if ngram in theirs
        )
        return product / norms if norms else 0.0

    scores = []
    for text, image in zip(captions, people, strict=True):
        total = 0.0
        for other in image:
            bigrams = [max(0, len(each.split()) - 1) for each in (text, other)]
            penalty = math.exp(-((bigrams[0] - bigrams[1]) ** 2) / 72)
            pairs = zip(vectors(text), vectors(other), strict=True)
            total += penalty * sum(similarity(*pair) for pair in pairs) / 4
        scores.append(10 * total / len(image))
    return scores


def count_common(left, right):
    """The length of the longest common subsequence."""
    row = [0] * (len(right) + 1)
    for one in left:
        before = row
        row = [0]
        for place, other in enumerate(right):
            row.append(before[place] + 1 if one == other else max(before[place + 1], row[place]))
    return row[-1]
