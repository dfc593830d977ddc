"""A trajectory as a conversation, in the browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.viewer.flows.screen import expect_at, open_page

pytestmark = pytest.mark.browser

_HERE = {
    "run": "r0",
    "iteration": 1,
    "task": "t0",
    "trajectory": "x",
    "step": 0,
    "estimator": "graphgpo",
}


def test_a_step_of_the_conversation_opens_by_click_and_by_key(page: Page):
    open_page(page, "trajectory", **_HERE)
    chat = page.get_by_role("region", name="Conversation")
    expect(chat.locator("article")).to_have_count(9)
    current = chat.locator("[aria-current=step]")
    expect(current.get_by_role("button")).to_have_text("Step 0")
    # One stop of Tab for the step that is shown; `j` and `k` lead to the others.
    expect(chat.locator("button[tabindex='0']")).to_have_count(1)
    chat.get_by_role("button", name="Step 2", exact=True).click()
    expect_at(page, "trajectory", step=2)
    expect(current.locator(".text")).to_have_text("c")
    expect(page.get_by_text("Step 2 of 0")).to_be_visible()
    last = chat.get_by_role("button", name="Step 3", exact=True)
    last.focus()
    page.keyboard.press("Enter")
    expect_at(page, "trajectory", step=3)
    expect(current.locator(".text")).to_have_text("d")


def test_text_of_a_log_stays_text_and_a_long_one_folds(page: Page):
    open_page(page, "trajectory", run="hostile", iteration=0)
    chat = page.get_by_role("region", name="Conversation")
    told = chat.locator("article.result").first
    expect(told.locator(".text")).to_contain_text("<script>alert(1)</script> ![x](https://")
    assert chat.locator("script, img, a").count() == 0
    thought = chat.locator("article.step").first.locator(".text").first
    expect(thought).to_contain_text("<script>alert(1)</script> ![x](https://")
    assert chat.locator("script, img, a").count() == 0
    text = told.locator(".fold")
    folded = text.bounding_box()
    told.get_by_role("button", name="Show all").click()
    unfolded = text.bounding_box()
    assert folded is not None
    assert unfolded is not None
    assert unfolded["height"] > 1.2 * folded["height"]
    told.get_by_role("button", name="Show less").click()
    expect(told.get_by_role("button", name="Show all")).to_be_visible()


def test_words_are_searched_and_letters_are_no_keys_there(page: Page):
    open_page(page, "trajectory", **_HERE)
    box = page.get_by_label("Search in this rollout")
    box.click()
    page.keyboard.type("jd")
    expect(page.locator(".tools .count")).to_have_text("0 places")
    expect(page.locator(".chat [aria-current=step]").get_by_role("button")).to_have_text("Step 0")
    box.fill("d")
    page.keyboard.press("Enter")
    expect(page.locator(".tools .count")).to_have_text(re.compile(r"^1 of \d+ places$"))
    page.locator(".outline summary").click()
    page.locator(".outline .line").nth(2).click()
    expect_at(page, "trajectory", step=2)


def test_the_page_does_without_the_highlighter_of_code(page: Page):
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    open_page(page, "trajectory", **_HERE)
    expect(page.locator(".chat article").first).to_be_visible()
    assert any("/static/js/" in address for address in loaded)
    assert [address for address in loaded if "SyntaxHighlighter" in address] == []
