"""The page in a real browser: what a family sees and does."""

from __future__ import annotations

import re
import time

import pytest
from household import HOUSEHOLD, SLIP, fill
from letters import LETTERS, MARKUP, SCHOOL
from live import served
from playwright.sync_api import expect
from pydantic import SecretStr

from api import create_app
from brain_pipeline.ask.prompt import NO_ANSWER
from brain_pipeline.brain import Brain
from brain_pipeline.errors import ModelUnreachable
from brain_pipeline.records import NOT_FOUND
from brain_pipeline.testing import HashedTokenEmbedder

pytestmark = pytest.mark.browser

QUESTION = "What do we need for the zoo field trip?"
PHONE = {"viewport": {"width": 360, "height": 660}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}
DARK = {"color_scheme": "dark"}
EML = (
    b"From: Walt <walt@home.example>\r\nTo: us@home.example\r\nSubject: Kite day\r\nMessage-ID: <kite@home.example>\r\n"
)
EML += b"Date: Mon, 15 Sep 2025 09:00:00 -0500\r\n\r\nThe kite flying contest starts at ten on the north beach.\r\n"


def ask(page, question=QUESTION):
    page.locator("#question").fill(question)
    page.keyboard.press("Enter")


def press_ask(page, question=QUESTION):
    """Without scripts, Enter begins a new line."""
    page.locator("#question").fill(question)
    page.get_by_role("button", name="Ask").click()


def state(page, name):
    expect(page.locator("#result")).to_have_attribute("data-state", name)


def no_sideways_scroll(page):
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_ask(visit, script, picture, violations):
    page = visit()
    expect(page.locator("#question")).to_be_focused()
    ask(page)
    state(page, "done")
    expect(page.locator("#answer")).to_have_text(script[0])
    card = page.locator(".card").first
    expect(card.locator(".found")).to_have_text("Found in: Field Trip Permission Slip, 2025-09-15")
    expect(card.locator(".kind")).to_have_text("email")
    score = float(card.locator(".number").inner_text())
    assert card.locator("meter").evaluate("bar => bar.value") == pytest.approx(score, abs=0.005)
    expect(page.locator(".confidence [data-for]:visible")).to_contain_text("confidence")
    expect(page.get_by_role("status").first).to_have_text(script[0])
    expect(page).to_have_title(f"{QUESTION} – Family Brain")
    assert page.url.endswith("/?q=What+do+we+need+for+the+zoo+field+trip%3F")
    assert violations(page) == []
    picture(page, "answer")


def test_sources_come_first_and_words_as_they_are_written(visit, llm, script, picture, violations):
    llm.allow(0)
    page = visit()
    ask(page)
    expect(page.locator(".card")).not_to_have_count(0)
    expect(page.locator("#answer")).to_have_text("")
    expect(page.locator("#waiting")).to_contain_text("Reading")
    assert violations(page) == []
    llm.allow(6)
    expect(page.locator("#answer")).to_contain_text("Every child needs")
    assert page.locator("#answer").inner_text() != script[0]
    expect(page.locator("#result")).to_have_attribute("aria-busy", "true")
    picture(page, "writing")
    llm.allow(99)
    expect(page.locator("#answer")).to_have_text(script[0])
    state(page, "done")
    expect(page.locator("#result")).to_have_attribute("aria-busy", "false")


def test_a_model_that_is_still_loading_is_explained(visit, llm):
    llm.allow(0)
    page = visit()
    page.clock.install()
    ask(page)
    state(page, "writing")
    page.clock.run_for(7_000)
    expect(page.locator("#waiting")).to_contain_text("Still thinking")
    expect(page.get_by_role("status").first).to_contain_text("Still thinking")
    llm.allow(99)
    state(page, "done")


def test_stop(visit, llm):
    llm.allow(3)
    page = visit()
    ask(page)
    expect(page.locator("#answer")).to_contain_text("Every")
    page.get_by_role("button", name="Stop").click()
    state(page, "stopped")
    llm.allow(99)
    page.get_by_role("button", name="Try again").click()
    state(page, "done")


def test_a_new_question_takes_the_place_of_the_old(visit, llm, script):
    llm.allow(2)
    page = visit()
    ask(page)
    expect(page.locator("#answer")).to_contain_text("Every")
    script[0] = "On Sunday at two."
    llm.allow(99)
    ask(page, "When is the piano recital?")
    expect(page.locator("#answer")).to_have_text("On Sunday at two.")
    expect(page.locator(".card .found").first).to_contain_text("Piano recital")


def test_only_the_sources_of_the_answer_stay(visit, llm, script):
    script[0] = "Every child needs a signed permission slip."
    llm.allow(0)
    page = visit()
    ask(page)
    expect(page.locator(".card")).to_have_count(2)
    llm.allow(99)
    state(page, "done")
    expect(page.locator(".card .found")).to_have_text(["Found in: Field Trip Permission Slip, 2025-09-15"])


def test_abstain(visit, script, picture, violations):
    script[0] = NO_ANSWER
    page = visit()
    ask(page)
    state(page, "abstained")
    expect(page.locator("#answer")).to_have_text(NOT_FOUND)
    expect(page.locator(".card")).to_have_count(0)
    expect(page.locator("#found")).to_be_hidden()
    expect(page.locator(".hint")).to_be_visible()
    assert violations(page) == []
    picture(page, "abstained")


def test_nothing_found(visit):
    page = visit()
    ask(page, "xylophone quantum zebra")
    state(page, "abstained")
    expect(page.locator("#answer")).to_have_text(NOT_FOUND)


def test_unavailable_and_back_again(visit, script, picture, violations):
    answer, script[0] = script[0], ModelUnreachable("No model server answers.")
    page = visit()
    ask(page)
    state(page, "unavailable")
    expect(page.get_by_role("heading", name="The brain can’t answer right now")).to_be_visible()
    expect(page.locator(".card .found").first).to_contain_text(SLIP.subject)
    assert violations(page) == []
    picture(page, "unavailable")
    script[0] = answer
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#answer")).to_have_text(answer)


def test_no_connection_and_back_again(visit, script, violations):
    page = visit()
    page.context.set_offline(True)
    ask(page)
    state(page, "offline")
    expect(page.get_by_role("heading", name="No connection to the brain")).to_be_visible()
    assert violations(page) == []
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#answer")).to_have_text(script[0])


def test_a_connection_that_breaks_off(visit, brain, llm):
    llm.allow(2)
    with served(create_app(brain.settings, brain)) as other:
        page = visit(base=other)
        ask(page)
        expect(page.locator("#answer")).to_contain_text("Every")
    state(page, "offline")


def test_a_question_that_can_t_be_asked(visit, violations):
    page = visit(f"/?q={'x' * 2001}")
    state(page, "refused")
    expect(page.locator("#refusal")).to_contain_text("2,000")
    assert violations(page) == []


def test_the_passage_with_the_question_s_words_marked(visit, picture, violations):
    page = visit()
    ask(page)
    card = page.locator(".card").first
    card.get_by_text("Read the passage").click()
    expect(card.locator(".passage")).to_have_text(SLIP.text)
    expect(card.locator("mark")).to_have_text(["zoo", "field", "trip"])
    expect(card.locator(".from")).to_have_text(f"From {SLIP.sender}")
    assert violations(page) == []
    picture(page, "passage")


def test_whose_mail_it_is_can_be_corrected(visit, brain, picture, violations):
    brain.learn_assignment("name:Sullivan", "Sullivan")
    brain.learn_assignment("subject:recital", "Hazel")
    page = visit()
    ask(page)
    card = page.locator(".card").first
    expect(card.locator(".whose")).to_be_hidden()
    card.get_by_text("Read the passage").click()
    card.get_by_label("Whose is it?").select_option("Sullivan")
    card.get_by_role("button", name="Save").press("Enter")
    expect(card.locator(".whose")).to_have_text("for Sullivan")
    expect(card.locator(".assign [role=status]")).to_have_text("Noted.")
    assert violations(page) == []
    picture(page, "whose")
    page.reload()
    expect(page.locator(".card .whose").first).to_have_text("for Sullivan")


def test_the_kind_of_mail(visit, script):
    script[0] = "They need a slip, and an orange shirt."
    page = visit()
    page.get_by_label("Newsletters").check()
    ask(page)
    kinds = page.locator(".card .kind")
    expect(kinds).to_have_text(["newsletter"])
    assert page.url.endswith("&source=newsletter")
    page.get_by_label("Emails").check()
    expect(kinds).to_have_text(["email"])
    page.get_by_label("Everything").check()
    expect(kinds).to_have_text(["email", "newsletter"])


def test_a_question_is_a_link_and_the_back_button_works(visit, script):
    script[0] = "It is on Sunday at two."
    page = visit("/?q=When+is+the+piano+recital%3F&source=email")
    expect(page.locator("#answer")).to_have_text(script[0])
    expect(page.locator("#question")).to_have_value("When is the piano recital?")
    assert page.get_by_label("Emails").is_checked()
    ask(page)
    expect(page.locator(".card .found").first).to_contain_text(SLIP.subject)
    page.go_back()
    expect(page.locator(".card .found").first).to_contain_text("Piano recital")
    expect(page.locator("#question")).to_have_value("When is the piano recital?")


def test_recent_questions_stay_in_this_browser_until_they_are_cleared(visit, violations):
    page = visit()
    for question in ("When is the piano recital?", QUESTION):
        ask(page, question)
        state(page, "done")
    page.locator(".home").click()
    links = page.locator("#recent a")
    expect(links).to_have_text([QUESTION, "When is the piano recital?"])
    assert violations(page) == []
    links.last.click()
    state(page, "done")
    expect(page.locator("#question")).to_have_value("When is the piano recital?")
    page.locator(".home").click()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#recent")).to_be_hidden()
    page.reload()
    expect(page.locator("#holds")).to_be_visible()
    expect(page.locator("#recent")).to_be_hidden()


def test_upload_by_choosing(visit, script, picture, violations):
    page = visit()
    expect(page.locator("#holds")).to_contain_text(f"{len(HOUSEHOLD + SCHOOL)} emails")
    files = [
        {"name": "kite.eml", "mimeType": "message/rfc822", "buffer": EML},
        {"name": "holiday.eml", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n" + bytes(500)},
    ]
    page.locator("#files").set_input_files(files)
    expect(page.locator("#upload-text")).to_contain_text("1 new email added")
    expect(page.locator("#upload-text")).to_contain_text("1 could not be read")
    expect(page.locator("#skipped li")).to_contain_text("holiday.eml: ")
    expect(page.locator("#holds")).to_contain_text(f"{len(HOUSEHOLD + SCHOOL) + 1} emails")
    assert violations(page) == []
    page.locator("#add").scroll_into_view_if_needed()
    picture(page, "upload")
    script[0] = "At ten on the north beach."
    ask(page, "When does the kite flying contest start?")
    expect(page.locator(".card .found").first).to_have_text("Found in: Kite day, 2025-09-15")


def test_upload_by_dropping_shows_its_progress(visit):
    page = visit()
    page.route("**/brain/ingest", lambda route: time.sleep(0.3) or route.continue_())
    page.evaluate(
        """text => {
          const dropped = new DataTransfer();
          dropped.items.add(new File([text], "kite.eml"));
          for (const type of ["dragover", "drop"])
            document.body.dispatchEvent(
              new DragEvent(type, { dataTransfer: dropped, bubbles: true, cancelable: true }));
        }""",
        EML.decode(),
    )
    expect(page.locator("#upload-bar")).to_be_visible()
    expect(page.locator("#upload-text")).to_contain_text("1 new email added")
    expect(page.locator("#upload-bar")).to_be_hidden()


def test_an_upload_without_connection(visit):
    page = visit()
    page.context.set_offline(True)
    page.locator("#files").set_input_files([{"name": "kite.eml", "mimeType": "message/rfc822", "buffer": EML}])
    expect(page.locator("#upload-text")).to_contain_text("No connection")


def test_an_empty_brain(visit, settings, llm, tmp_path, picture, violations):
    empty = settings.model_copy(update={"data_dir": tmp_path / "none"})
    with Brain(empty, embedder=HashedTokenEmbedder(), llm=llm) as brain, served(create_app(empty, brain)) as base:
        page = visit(base=base)
        expect(page.get_by_role("heading", name="There is no mail here yet")).to_be_visible()
        assert violations(page) == []
        picture(page, "empty")
        page.locator("#files").set_input_files([{"name": "kite.eml", "mimeType": "message/rfc822", "buffer": EML}])
        expect(page.locator("#holds")).to_contain_text("1 email")
        expect(page.locator("#empty")).to_be_hidden()


def test_a_brain_that_wants_a_token(visit, brain, script, picture, violations):
    locked = brain.settings.model_copy(update={"api_token": SecretStr("open sesame")})
    with served(create_app(locked, brain)) as base:
        page = visit(base=base)
        expect(page.locator("#token")).to_be_focused()
        assert violations(page) == []
        picture(page, "token")
        page.locator("#token").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#token")).to_be_focused()
        page.locator("#token").fill("open sesame")
        page.keyboard.press("Enter")
        expect(page.locator("#holds")).to_contain_text("6 emails")
        ask(page)
        expect(page.locator("#answer")).to_have_text(script[0])
        page.get_by_text("Read the passage").first.click()
        expect(page.locator(".passage").first).to_have_text(SLIP.text)
        page.locator("#files").set_input_files([{"name": "kite.eml", "mimeType": "message/rfc822", "buffer": EML}])
        expect(page.locator("#upload-text")).to_contain_text("1 new email added")
        page.reload()
        expect(page.locator("#answer")).to_have_text(script[0])
        assert page.evaluate("localStorage.getItem('token')") is None


def test_a_link_to_a_brain_that_wants_a_token(visit, brain, script):
    locked = brain.settings.model_copy(update={"api_token": SecretStr("open sesame")})
    with served(create_app(locked, brain)) as base:
        page = visit("/?q=zoo+field+trip", base=base)
        state(page, "locked")
        page.locator("#token").fill("open sesame")
        page.keyboard.press("Enter")
        expect(page.locator("#answer")).to_have_text(script[0])


def test_keyboard_only(visit):
    page = visit()
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    state(page, "done")
    focused = []
    for _ in range(12):
        page.keyboard.press("Tab")
        focused.append(page.evaluate("document.activeElement.id || document.activeElement.localName"))
        assert page.evaluate("document.activeElement.matches(':focus-visible')")
        if focused[-1] == "summary":
            break
    assert focused == ["go", "input", "summary"]
    page.keyboard.press("Enter")
    expect(page.locator(".card .passage").first).to_have_text(SLIP.text)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowRight")
    state(page, "done")
    assert page.get_by_label("Emails").is_checked()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "files":
            break
    expect(page.locator("#files")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone(visit, brain, picture, violations, scheme):
    fill(brain, LETTERS[-1:])
    page = visit(color_scheme=scheme, **PHONE)
    assert no_sideways_scroll(page)
    ask(page)
    state(page, "done")
    page.locator("summary").first.click()
    expect(page.locator(".passage").first).to_have_text(SLIP.text)
    page.evaluate("scrollTo(0, 0)")
    assert no_sideways_scroll(page)
    assert violations(page) == []
    for box in page.locator("button:visible, summary:visible, fieldset label, a:visible").all():
        assert box.bounding_box()["height"] >= 40
    picture(page, f"phone-{scheme}")
    ask(page, "Who wins the marmalade contest with unbreakable words?")
    expect(page.locator(".found").first).to_contain_text("Donaudampfschifffahrt")
    page.locator("summary").first.click()
    expect(page.locator(".passage").first).to_contain_text("xxx")
    assert no_sideways_scroll(page)


def test_dark(visit, picture, violations):
    page = visit(**DARK)
    assert violations(page) == []
    ask(page)
    state(page, "done")
    red, green, blue = map(int, re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor")))
    assert max(red, green, blue) < 60
    assert violations(page) == []
    picture(page, "dark")


@pytest.mark.parametrize("scripts", [True, False])
def test_a_subject_that_is_markup_stays_text(visit, brain, script, scripts):
    fill(brain, LETTERS)
    script[0] = "<img src=x onerror=\"document.title='4'\"> on <b>Tuesday</b>"
    page = visit(java_script_enabled=scripts)
    press_ask(page, "When is the parade of lanterns?")
    card = page.locator(".card").first
    expect(card.locator(".found")).to_have_text(f"Found in: {MARKUP}, 2025-09-03")
    card.get_by_text("Read the passage").click()
    expect(card.locator(".passage")).to_have_text(LETTERS[0].text)
    expect(page.locator("#result img, #result script, #result b")).to_have_count(0)
    if scripts:
        expect(page).to_have_title("When is the parade of lanterns? – Family Brain")


@pytest.mark.parametrize(
    ("question", "letter", "direction"),
    [
        ("Welche Größe haben die Fußballschuhe für Zoë? 🥾", LETTERS[1], "ltr"),
        ("¿Quién trae la piñata de cumpleaños? 🎉", LETTERS[2], "ltr"),
        ("מתי הטיול לגן החיות?", LETTERS[3], "rtl"),
    ],
)
def test_other_languages(visit, brain, script, violations, question, letter, direction):
    fill(brain, LETTERS)
    script[0] = letter.text
    page = visit(**PHONE)
    ask(page, question)
    expect(page.locator("#answer")).to_have_text(letter.text)
    card = page.locator(".card").first
    expect(card.locator(".found")).to_have_text(f"Found in: {letter.subject}, {letter.date:%Y-%m-%d}")
    card.get_by_text("Read the passage").click()
    expect(card.locator(".passage")).to_have_text(letter.text)
    expect(card.locator("mark")).not_to_have_count(0)
    for place in ("#question", "#answer", ".card .passage"):
        assert page.locator(place).first.evaluate("one => getComputedStyle(one).direction") == direction
    assert no_sideways_scroll(page)
    assert violations(page) == []
    page.locator(".home").click()
    expect(page.locator("#recent a")).to_have_text(question)


def test_with_scripts_off_a_plain_form_answers(visit, script, picture):
    page = visit(java_script_enabled=False)
    press_ask(page)
    expect(page.locator("#answer")).to_have_text(script[0])
    expect(page.locator(".card .found").first).to_have_text("Found in: Field Trip Permission Slip, 2025-09-15")
    expect(page.locator(".confidence [data-for]:visible")).to_have_count(1)
    page.get_by_text("Read the passage").first.click()
    expect(page.locator(".passage").first).to_have_text(SLIP.text)
    picture(page, "no-scripts")


def test_with_scripts_off_a_link_answers_too(visit, script):
    page = visit("/?q=zoo+field+trip&source=email", java_script_enabled=False)
    expect(page.locator("#answer")).to_have_text(script[0])
    assert "/answer?q=zoo+field+trip&source=email" in page.url


def test_an_event_source_asks_once(visit, llm, url):
    page = visit()
    seen = page.evaluate(
        """address => new Promise(done => {
          const source = new EventSource(address), seen = [];
          for (const name of ["sources", "text", "answer"])
            source.addEventListener(name, ({ data }) => seen.push(Object.keys(JSON.parse(data))[0]));
          source.addEventListener("error", () => source.readyState === EventSource.CLOSED && done(seen));
        })""",
        f"{url}/brain/query/stream?q=zoo+field+trip",
    )
    assert (seen[0], seen[-1], set(seen[1:-1])) == ("sources", "answer", {"text"})
    assert llm.calls == 1
