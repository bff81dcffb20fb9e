"""Words that the Word Mover's Distance leaves out.

It is NLTK's English list of 179 words, which extends that of the Snowball stemmer (BSD). Other
versions of it (153, 198 words) differ only in words with an apostrophe, which PTB splits. NLTK
names no licence for it; such words belong to nobody.
"""

SIGNATURE = "nltk179"
_LIST = """
i me my myself we our ours ourselves you your yours yourself yourselves he him his himself
she her hers herself it its itself they them their theirs themselves what which who whom
this that these those a an the

am is are was were be been being have has had having do does did doing can will should

and but if or because as until while of at by for with about against between into through
during before after above below to from up down in out on off over under

again further then once here there when where why how all any both each few more most other
some such no nor not only own same so than too very just now

s t d ll m o re ve y ma don ain aren couldn didn doesn hadn hasn haven isn mightn mustn needn
shan shouldn wasn weren won wouldn

you're you've you'll you'd she's it's that'll should've don't aren't couldn't didn't doesn't
hadn't hasn't haven't isn't mightn't mustn't needn't shan't shouldn't wasn't weren't won't
wouldn't
"""
ENGLISH = frozenset(_LIST.split())
