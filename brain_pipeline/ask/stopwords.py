"""Words that ask, address, greet or join, by language.

They say nothing of what a mail is about, and in a question of another language than the mail's they would look like
rare terms that the mail lacks. The lists are short on purpose: a frequent word weighs little anyway. Left out of the
other languages are words that also mean something in English, such as ``hat``, ``van``, ``son`` and ``los``.
"""

from __future__ import annotations

from collections.abc import Sequence

from brain_pipeline.index.terms import terms

_FUNCTION_WORDS = """
a about according again all already also am an and another any are as at be because been before being between both but
by can could did do does doing done during each either else ever every few for from had has have having he her here hers
him his how i if in into is it its itself just like many may me might mine more most much must my no nor not of off on
only onto or other others our ours out over own per please same shall she should since so some still such than that the
their theirs them then there these they this those through to too under until up upon us very via was we were what when
where whether which while who whom whose why will with within without would yet you your yours s t re ve ll
"""
_CARRIERS = """
able ask asked came come comes coming day days date dates find found gave get gets getting give given go goes going gone
got happen hour hours keep kept kind knew know knows let lets made make makes making need needs now put said say says
saw see seem seen sort take taken takes thing things think thought time times today told tomorrow tonight took try type
use used want wanted wants way went yesterday
"""
_GREETINGS = """
bye cheers goodbye good hello hey hi lol morning evening afternoon ok okay thank thanks thx welcome
bonjour ciao danke gracias guten hallo hola merci moin morgen obrigado servus
"""
_GERMAN = """
aber als am an auch auf aus bei bis bitte da dann das dass dein dem den der des dich dir du durch ein eine einem einen
einer eines er es euch fur gab gibt haben habe hatte ich ihm ihn ihr ihre im in ist ja kann kannst kein keine konnen
meine mich mir mussen nach nicht noch oder ohne sein seine sich sie sind sollen uber um und uns unser unsere viel viele
vom von vor wann warum was welche welchen welcher welches wem wen wenn wer werden wie wieviel wir wird wo wohin wurde zu
zum zur uhr tag tage
"""
_SPANISH = """
al como cual cuales cuando cuanta cuantas cuanto cuantos de del donde el ella ellos en es esta estan este fue lo mi mis
muy nos nuestra nuestro o para pero por porque que quien se ser sin su sus te tiene tu un una unas uno unos y ya dia
dias hora
"""
_FRENCH = """
au aux avec ce cette dans de des du elle est et il ils je le leur les mes mon notre nous ont ou pas pourquoi quand que
quel quelle quelles quels qui quoi sa ses sont sur un une vos votre vous combien heure jour
"""
_ITALIAN = """
che chi cosa dei della di e gli il nel per perche quale quando quanto sono suo tra un una giorno ora
"""
_PORTUGUESE = """
ao aos dos e ele ela eles em foi mais meu minha nao na nas nos o onde ou pela pelo qual quando quem quanto sao seu sua
tem um uma dia hora
"""
_DUTCH = """
aan bij dat de deze dit een er het hoe hoeveel ik je jij maar met mijn naar niet om onze ons op te voor waar waarom
wanneer wat welk welke wie wij worden ze zijn dag uur
"""

_ENGLISH = frozenset(terms(_FUNCTION_WORDS + _CARRIERS + _GREETINGS))
_OTHERS = [frozenset(terms(words)) for words in (_GERMAN, _SPANISH, _FRENCH, _ITALIAN, _PORTUGUESE, _DUTCH)]


def stop_words(words: Sequence[str]) -> frozenset[str]:
    """The stop words of the language that a question's terms seem to be in, always with the English ones."""
    best = max(_OTHERS, key=lambda language: _hits(words, language))
    return _ENGLISH | best if _hits(words, best) > _hits(words, _ENGLISH) else _ENGLISH


def _hits(words: Sequence[str], language: frozenset[str]) -> int:
    return sum(word in language for word in words)
