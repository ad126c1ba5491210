"""Mail that a page may stumble over."""

from __future__ import annotations

from household import mail

SCHOOL = (
    mail(
        "Friday morning",
        "Hi all, the zoo bus leaves at 8:45 from the side entrance, so please be early. Lunch is in the picnic barn, "
        "rain or shine.\n\nWho still needs an orange shirt?",
        day=16,
        sender_name="Room parents",
        sender_address="room3@school.example",
    ),
    mail(
        "Otter weekly: trip news",
        "Third grade: the zoo field trip is this Friday. Every child wears the orange class shirt.\n\nFourth grade: "
        "library day moves to Thursday.",
        day=19,
        kind="newsletter",
        sender_name="Otter Elementary",
        sender_address="news@school.example",
    ),
)

MARKUP = '<img src=x onerror="document.title=1"><script>document.title=2</script> & "Zoo"'
LETTERS = (
    mail(MARKUP, 'The parade of lanterns is on Tuesday. <b>Bold</b> <script>document.title = "3"</script>', day=3),
    mail("Größe der Fußballschuhe 🥾", "Für das Fußballtraining braucht Zoë Schuhe in Größe 34. 🥾 Grüße, Jörg", day=4),
    mail("¿Quién trae la piñata? 🎉", "La piñata para el cumpleaños de Íñigo la trae la abuela mañana. 🎉", day=5),
    mail("טיול לגן החיות", "הטיול לגן החיות יוצא ביום שלישי בשעה 8:30.", day=6),
    mail(
        "Donaudampfschifffahrtsgesellschaft" * 4, "Unbreakable words about the marmalade contest. " + "x" * 300, day=7
    ),
)
