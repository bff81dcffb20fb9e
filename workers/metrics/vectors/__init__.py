"""Words and captions as vectors: word2vec files, language models."""
