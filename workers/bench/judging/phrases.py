"""The first person and the first scene that a caption names, by small word lists of our own."""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass

_WORD = re.compile(r"[A-Za-z0-9]+(?:['-][A-Za-z0-9]+)*")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _groups(groups: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    """Word -> the groups that it belongs to."""
    words = {word for text in groups.values() for word in text.split()}
    return {
        word: frozenset(name for name, text in groups.items() if word in text.split())
        for word in words
    }


# Words of one group may mean the same person: one writer's "young man" is a "boy" to another.
_PEOPLE = _groups(
    {
        "male": "man men guy guys gentleman gentlemen boy boys father dad son sons brother",
        "female": "woman women lady ladies girl girls mother mom daughter daughters sister sisters",
        "anyone": "person people child children kid kids toddler toddlers baby babies infant adult "
        "adults teenager teenagers family player players rider biker skateboarder "
        "snowboarder skier surfer climber dancer dancers performer worker workers friends",
    }
)
_MANY = _words(
    "men guys gentlemen boys sons brothers women ladies girls daughters sisters people children "
    "kids toddlers babies adults teenagers players dancers workers friends"
)
_DETERMINERS = _words(
    "a an the one two three four five six 1 2 3 4 5 6 several some many few another this that "
    "these those his her their"
)
_BEFORE_PEOPLE = _DETERMINERS | _words(
    "young old older elderly little small tall big large adult teenage middle-aged bald "
    "blond blonde brunette dark-haired dark-skinned bearded shirtless asian african american "
    "african-american black white indian chinese japanese hispanic smiling happy pretty beautiful "
    "handsome barefoot pregnant lone male female soccer football baseball basketball tennis hockey"
)
_BUNCHES = [[bunch, "of"] for bunch in ("group", "crowd", "couple", "pair", "line", "team")]

# Scenes of one group may be the same place: a beach has water and sand.
_SCENES = _groups(
    {
        "water": "water pool lake river ocean sea beach shore waterfall pond creek stream surf "
        "wave waves fountain dock pier puddle",
        "sand": "sand beach shore desert dirt mud",
        "green": "grass field park yard backyard garden lawn forest woods trail path meadow "
        "playground hill hillside dirt mud gym stadium track court",
        "high": "mountain mountains hill hillside cliff rock rocks slope snow ice rink",
        "town": "street road sidewalk city alley plaza square town market bridge park store shop "
        "restaurant building lot driveway steps stairs playground train subway station bus",
        "indoors": "room kitchen bathroom bedroom bed couch floor office classroom library church "
        "gym store shop restaurant bar cafe museum stage stadium court station building subway "
        "train bus rink",
    }
)
_BEFORE_SCENES = _DETERMINERS | _words(
    "grassy sandy snowy rocky dirt muddy wooded wooden green large small big busy crowded empty "
    "open public outdoor indoor swimming tennis basketball baseball soccer football parking "
    "covered snow-covered shallow deep dry wet city town urban rural paved gravel concrete cement "
    "brick stone steep frozen calm blue clear dark shopping living dining ice"
)
_PREPOSITIONS = _words(
    "in on at near along across through by beside inside outside down up into over around past onto"
)
_CLOSED = _PREPOSITIONS | _words(
    "and or but with without while as to that which who where when is are was were of from for "
    "next between during before after behind under against toward towards together"
)


@dataclass(frozen=True)
class CaptionPhrase:
    """`text` is the part of its caption from `start` to `end`; a scene follows a preposition, which
    is not a part of it. `slot` says which phrases may replace it: those of people with the same
    number (one, many, a bunch), or those of scenes with the same preposition.
    """

    text: str
    start: int
    end: int
    groups: frozenset[str]
    slot: str


class _PhraseWords:
    """A caption's words in small letters, and whether only blanks stand between two of them."""

    def __init__(self, caption: str) -> None:
        self._caption = caption
        self._found = list(_WORD.finditer(caption))
        self.words = [found[0].lower() for found in self._found]

    def adjacent(self, place: int) -> bool:
        if not 0 < place < len(self.words):
            return False
        between = self._caption[self._found[place - 1].end() : self._found[place].start()]
        return not between.strip()

    def first(self, place: int, before: Container[str]) -> int:
        """Beginning of the phrase whose last word is at `place`."""
        while self.adjacent(place) and self.words[place - 1] in before:
            place -= 1
        return place

    def phrase(self, first: int, last: int, groups: frozenset[str], slot: str) -> CaptionPhrase:
        start, end = self._found[first].start(), self._found[last].end()
        return CaptionPhrase(self._caption[start:end], start, end, groups, slot)


def find_person(caption: str) -> CaptionPhrase | None:
    found = _PhraseWords(caption)
    for place, head in enumerate(found.words):
        if head in _PEOPLE:
            first = found.first(place, _BEFORE_PEOPLE)
            slot = "many" if head in _MANY else "one"
            if found.words[max(0, first - 2) : first] in _BUNCHES and found.adjacent(first):
                first, slot = found.first(first - 2, _BEFORE_PEOPLE), "a bunch"
            return (
                found.phrase(first, place, _PEOPLE[head], slot)
                if _ends_there(found, first)
                else None
            )
    return None


def find_scene(caption: str) -> CaptionPhrase | None:
    found = _PhraseWords(caption)
    for place, head in enumerate(found.words):
        if head not in _SCENES or _goes_on(found, place + 1):
            continue
        first = found.first(place, _BEFORE_SCENES | _SCENES.keys())
        if found.adjacent(first) and found.words[first - 1] in _PREPOSITIONS:
            return found.phrase(first, place, _SCENES[head], found.words[first - 1])
    return None


def find_groups(caption: str, kind: str) -> frozenset[str]:
    """The groups of all words for people (`person`) or for scenes (`scene`) in a caption."""
    groups = _PEOPLE if kind == "person" else _SCENES
    found = (groups.get(word, frozenset()) for word in _PhraseWords(caption).words)
    return frozenset().union(*found)


def _ends_there(found: _PhraseWords, first: int) -> bool:
    """True unless the phrase ends a longer one, such as "two construction workers"."""
    if found.words[first] in _DETERMINERS or not found.adjacent(first):
        return True
    return found.words[first - 1] in _CLOSED


def _goes_on(found: _PhraseWords, place: int) -> bool:
    """True if a phrase goes on behind the word for a scene: "lawn chair", "snow covered hill"."""
    if not found.adjacent(place):
        return False
    word = found.words[place]
    return word == "climbing" or not (word in _CLOSED or word.endswith("ing"))
