"""The page in a real Chromium: live, by keyboard, in both themes, on a phone, without errors."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from odcd.home.postgres import EmbeddedPostgres
from tests.odcd.page.conftest import restart
from tests.support.builders.scene import Scene, furnish, scene
from tests.support.harness.browser import Tab, chromium, keep_picture, needs_chromium
from tests.support.harness.controlplane.children import free_port
from tests.support.harness.daemon import Odc, kill, wait
from tests.support.harness.database import TestServer

pytestmark = [pytest.mark.long, needs_chromium]
VIEWS = {
    "overview": "/", "queue": "/page/queue", "nodes": "/page/nodes", "plan": "/page/plan",
    "week": "/page/plan?zoom=7d", "ended": "/page/ended", "job": "/page/jobs/121",
    "node": "/page/plan?node=gpu-h100-01",
    "waiting": "/page/jobs/135", "array": "/page/jobs/143", "problem": "/page/jobs/999999",
}  # fmt: skip


@pytest.fixture(scope="module")
def furnished(
    postgres_server: TestServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    dsn = postgres_server.clone()
    with scene(dsn, tmp_path_factory.mktemp("page")) as made:
        made.call(furnish(made))
        yield made
    postgres_server.drop(dsn)


@pytest.fixture(scope="module")
def browser(furnished: Scene) -> Iterator[Browser]:
    """After the database: Playwright's loop leaves this thread no other."""
    assert furnished.port
    with chromium() as found:
        yield found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_every_view_loads_without_errors(
    browser: Browser, furnished: Scene, width: int, dark: bool
) -> None:
    """No console errors, no foreign hosts, no serious findings of axe-core, no sideways scrolling.
    The content security policy works, because violations appear on the console."""
    with Tab(browser, width=width, dark=dark) as tab:
        tab.enter(furnished.call(furnished.ticket("alice")))
        for name, path in VIEWS.items():
            tab.page.goto(furnished.url + path)
            if name != "problem":
                tab.wait_live()
            assert tab.grave_faults() == [], name
            assert not tab.scrolls_sideways(), name
            theme = "dark" if dark else "light"
            keep_picture(tab, f"{name}-{width}-{theme}", full=name in ("overview", "plan"))
            if name == "problem":
                tab.errors = [line for line in tab.errors if "404" not in line]
            # The scene has no executor that output could be read from.
            tab.errors = [line for line in tab.errors if "503" not in line]
            assert tab.errors == [], name
        assert tab.hosts == {f"127.0.0.1:{furnished.port}"}


def test_the_login_instructions_load_without_errors(browser: Browser, furnished: Scene) -> None:
    with Tab(browser, width=390) as tab:
        tab.page.goto(furnished.url)
        expect(tab.page.locator("h1")).to_have_text("Log in")
        expect(tab.page.locator("pre")).to_contain_text("odcctl page")
        assert tab.grave_faults() == []
        keep_picture(tab, "come-in")


def test_the_login_button_names_the_user(browser: Browser, furnished: Scene) -> None:
    """A user who is already signed in as the same user need not press it."""

    def address(user: str) -> str:
        return furnished.call(furnished.ticket(user))

    with Tab(browser, width=390) as tab:
        tab.enter(address("alice"))
        tab.page.goto(address("bob"))
        expect(tab.page.locator("h1")).to_have_text("Log in as bob?")
        expect(tab.page.locator("main")).to_contain_text("logged in as alice")
        assert tab.grave_faults() == []
        keep_picture(tab, "come-in-as")
        tab.page.get_by_role("link", name="No").click()
        expect(tab.page.locator(".me")).to_have_text("alice")
        tab.page.goto(address("alice"))
        tab.page.wait_for_url(furnished.url + "/")
        tab.page.goto(furnished.url + "/page/queue")
        tab.page.go_back()
        expect(tab.page.locator("h1, h2").first).to_be_visible()
        assert "/page/enter" not in tab.page.url
        assert tab.errors == []


def test_logging_out_ends_all_tabs(browser: Browser, furnished: Scene) -> None:
    with Tab(browser) as tab:
        tab.enter(furnished.call(furnished.ticket("alice")))
        other = tab.page.context.new_page()
        other.goto(furnished.url + "/page/queue")
        other.wait_for_selector("#pulse.on")
        tab.page.get_by_role("button", name="Log out").click()
        expect(tab.page.locator("h1")).to_have_text("Log in")
        expect(other.locator("h1")).to_have_text("Log in")


def test_a_job_that_starts_is_seen_without_a_reload(browser: Browser, furnished: Scene) -> None:
    it = furnished

    async def hurry() -> int:
        job_id = await it.submit("emil", name="just-now", gpus_per_node=0, time_limit_s=600)
        return job_id

    with Tab(browser) as tab:
        tab.enter(it.call(it.ticket("emil")))
        tab.wait_live()
        tab.page.evaluate("window.loadedOnce = true")
        counted = tab.page.locator("a.sum[href$='running'] b")
        before = int(counted.inner_text())
        job_id = it.call(hurry())
        row = tab.page.locator(f"#waiting > li[data-key='{job_id}']")
        expect(row).to_contain_text("just-now")
        assert job_id in it.call(it.plan())
        expect(row).to_have_count(0)
        expect(counted).to_have_text(str(before + 1))
        assert tab.page.evaluate("window.loadedOnce") is True
        it.call(it.run(job_id))
        it.call(it.end(job_id))
        assert tab.errors == []


def test_a_dead_database_and_its_return_are_shown(
    browser: Browser, own_server: EmbeddedPostgres, tmp_path: Path
) -> None:
    with scene(own_server.dsn, tmp_path) as it, Tab(browser, width=390) as tab:
        tab.enter(it.call(it.ticket(None)))
        tab.wait_live()
        tab.page.evaluate("window.loadedOnce = true")
        dead = own_server.postmaster()
        assert dead is not None
        os.kill(dead.pid, signal.SIGKILL)
        pulse = tab.page.locator("#pulse")
        expect(pulse).to_have_text(re.compile(r"not live: as of \d\d:\d\d:\d\d"))
        assert tab.grave_faults() == []
        keep_picture(tab, "not-live")
        restart(own_server)
        expect(pulse).to_have_text("live")
        assert tab.page.evaluate("window.loadedOnce") is True


def test_the_reason_for_waiting_opens_by_click_and_by_keyboard(
    browser: Browser, furnished: Scene
) -> None:
    with Tab(browser) as tab:
        tab.enter(furnished.call(furnished.ticket("alice")))
        tab.wait_live()
        first = tab.page.locator("#waiting > li").filter(has_text="moe-pretrain")
        first.locator("summary").click()
        expect(first.locator(".causes li").nth(1)).to_contain_text("holds")
        keep_picture(tab, "why")
        other = tab.page.locator("#waiting > li").filter(has_text="llama-sft")
        other.locator("summary").focus()
        tab.page.keyboard.press("Enter")
        expect(other.locator("details")).to_have_attribute("open", "")
        expect(other.locator(".causes li").first).to_be_visible()
        # It stays open when the row is replaced.
        furnished.call(furnished.foresee())
        tab.page.wait_for_timeout(800)
        expect(other.locator("details")).to_have_attribute("open", "")
        assert tab.errors == []


def test_every_control_is_reachable_by_keyboard(browser: Browser, furnished: Scene) -> None:
    """Every stop of the Tab key is visible and shows that it has the focus; the map and the chart
    can be skipped."""
    with Tab(browser) as tab:
        tab.enter(furnished.call(furnished.ticket("alice")))
        tab.wait_live()
        seen: list[str] = []
        for _ in range(90):
            tab.page.keyboard.press("Tab")
            focused = tab.page.evaluate(
                "() => {const e = document.activeElement; const s = getComputedStyle(e);"
                "const b = e.getBoundingClientRect();"
                "return {name: (e.textContent || e.ariaLabel || '').trim(), tag: e.tagName,"
                "shown: b.width > 0 && b.height > 0,"
                "marked: s.outlineStyle !== 'none' || e.classList.contains('bar')}}"
            )
            assert focused["shown"], focused
            assert focused["marked"], focused
            seen.append(focused["name"])
            if focused["name"] == "Skip the map":
                tab.page.keyboard.press("Enter")
        assert seen[0] == "Skip to content"
        assert {"Overview", "Queue", "Log out", "Skip the map", "6 hours", "Skip the chart"} <= set(
            seen
        )
        tab.page.goto(furnished.url)
        tab.page.keyboard.press("Tab")
        tab.page.keyboard.press("Enter")
        assert tab.page.evaluate("document.activeElement.id") == "main"


def test_own_jobs_come_first_and_change_without_a_reload(
    browser: Browser, furnished: Scene
) -> None:
    it = furnished

    async def submit(user: str) -> int:
        return await it.submit(user, name="fresh-one", gpus_per_node=0, time_limit_s=600)

    with Tab(browser) as tab:
        tab.enter(it.call(it.ticket("maya")))
        tab.wait_live()
        tab.page.evaluate("window.loadedOnce = true")
        expect(tab.page.locator("main section").first.locator("h2")).to_have_text("Your jobs")
        other, own = it.call(submit("bob")), it.call(submit("maya"))
        row = tab.page.locator(f"#mine > li[data-key='{own}']")
        expect(row).to_contain_text("fresh-one")
        assert tab.page.locator(f"#mine > li[data-key='{other}']").count() == 0
        assert {own, other} <= set(it.call(it.plan()))
        expect(row).to_contain_text("of 10 min")
        for job_id in (own, other):
            it.call(it.run(job_id))
            it.call(it.end(job_id))
        expect(row).to_have_count(0)
        assert tab.page.evaluate("window.loadedOnce") is True
        assert tab.errors == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_legend_has_the_colours_of_the_cells(
    browser: Browser, furnished: Scene, dark: bool
) -> None:
    colours = (
        "(all) => all.map(e => [e.dataset.user, getComputedStyle(e).backgroundColor])"
        ".filter(([user]) => user)"
    )
    with Tab(browser, dark=dark) as tab:
        tab.enter(furnished.call(furnished.ticket("alice")))
        tab.page.goto(furnished.url + "/page/nodes")
        tab.wait_live()
        legend = dict(tab.page.locator(".legend.users i").evaluate_all(colours))
        cells = dict(tab.page.locator(".map .c").evaluate_all(colours))
        assert legend == cells
        assert len(set(legend.values())) == len(legend) >= 6


def test_a_short_bar_shows_its_label_on_hover_and_on_focus(
    browser: Browser, furnished: Scene
) -> None:
    with Tab(browser) as tab:
        tab.enter(furnished.call(furnished.ticket("alice")))
        tab.page.goto(furnished.url + "/page/plan?zoom=7d")
        tab.wait_live()
        bar = tab.page.locator(".bar.running").filter(has=tab.page.locator(".tip")).first
        tip = bar.locator(".tip")
        assert tip.text_content()
        expect(tip).to_be_hidden()
        bar.locator("svg rect").first.hover()
        expect(tip).to_be_visible()
        keep_picture(tab, "tip")
        tab.page.mouse.move(0, 0)
        expect(tip).to_be_hidden()
        bar.focus()
        tab.page.keyboard.press("Shift+Tab")
        tab.page.keyboard.press("Tab")
        expect(tip).to_be_visible()
        inside = (
            "e => {const b = e.getBoundingClientRect(), c = e.closest('.bars')"
            ".getBoundingClientRect(); return b.left >= c.left && b.right <= c.right"
            " && b.top >= c.top - 2 && b.bottom <= c.bottom + 2}"
        )
        assert tip.evaluate(inside)
        assert tab.errors == []


def test_every_planned_bar_is_hatched(browser: Browser, furnished: Scene) -> None:
    with Tab(browser) as tab:
        tab.enter(furnished.call(furnished.ticket("alice")))
        for path in ("/", "/page/plan", "/page/plan?zoom=7d"):
            tab.page.goto(furnished.url + path)
            tab.wait_live()
            fills = tab.page.locator(".bar.planned rect:nth-of-type(2)").evaluate_all(
                "(all) => all.map(e => [getComputedStyle(e).fill, e.getBBox().width])"
            )
            assert len(fills) >= tab.page.locator(".bar.planned").count() > 0
            assert all(fill == 'url("#hatch")' and wide >= 2 for fill, wide in fills), path
            assert tab.page.locator("#hatch").count() == 1


def test_few_nodes_have_high_rows(browser: Browser, furnished: Scene) -> None:
    height = "e => e.getBoundingClientRect().height"
    with Tab(browser) as tab:
        tab.enter(furnished.call(furnished.ticket("alice")))
        tab.page.goto(furnished.url + "/page/plan")
        many = tab.page.locator(".bars").first.evaluate(height)
        tab.page.goto(furnished.url + "/page/plan?node=gpu-h100-01")
        assert tab.page.locator(".bars").first.evaluate(height) >= 3 * many
        expect(tab.page.locator("#node")).to_contain_text("of 192 allocated")


def test_a_job_that_can_never_start_is_red(browser: Browser, furnished: Scene) -> None:
    it = furnished

    async def submit(**more: object) -> int:
        return await it.submit("emil", name="lost", gpus_per_node=0, time_limit_s=600, **more)

    first = it.call(submit())
    assert first in it.call(it.plan())
    lost = it.call(submit(dependency=f"afterok:{first}"))
    it.call(it.run(first))
    it.call(it.end(first, exit_code=1))
    colour = "e => getComputedStyle(e).color"
    for dark in (False, True):
        with Tab(browser, dark=dark) as tab:
            tab.enter(it.call(it.ticket("emil")))
            tab.page.goto(it.url + "/page/queue?state=waiting&user=emil")
            tab.wait_live()
            row = tab.page.locator(f"#queue > li[data-key='{lost}']")
            badge = row.locator(".badge")
            expect(badge).to_have_text("can never start")
            red = tab.page.locator("body").evaluate(
                "e => {const s = document.createElement('b'); s.className = 'bad'; e.append(s);"
                "return getComputedStyle(s).color}"
            )
            assert badge.evaluate(colour) == row.locator("summary").evaluate(colour) == red
            assert tab.grave_faults() == []
            keep_picture(tab, f"never-{'dark' if dark else 'light'}")
    it.call(it.ask("POST", f"/v1/jobs/{lost}/cancel", {}))


@pytest.mark.parametrize("width", [1440, 390])
def test_the_bar_of_waits_has_a_scale(browser: Browser, furnished: Scene, width: int) -> None:
    """The words of the scale are at the ticks of the bars below."""
    with Tab(browser, width=width) as tab:
        tab.enter(furnished.call(furnished.ticket("alice")))
        tab.page.goto(furnished.url + "/page/queue?state=waiting")
        scale = tab.page.locator(".scale svg")
        expect(scale).to_be_visible()
        words = scale.locator("text").all_text_contents()
        assert words == ["now", "1 hour", "1 day", "7 days"]
        middle = "e => {const b = e.getBoundingClientRect(); return b.left + b.width / 2}"
        ticks = tab.page.locator("#queue svg.band").first.locator(".tick")
        for word, tick in ((1, 0), (2, 1)):
            apart = scale.locator("text").nth(word).evaluate(middle) - ticks.nth(tick).evaluate(
                middle
            )
            assert abs(apart) < 4


def test_filters_are_menus_that_work_without_javascript(browser: Browser, furnished: Scene) -> None:
    with Tab(browser, java_script_enabled=False) as tab:
        tab.enter(furnished.call(furnished.ticket("alice")))
        tab.page.goto(furnished.url + "/page/queue")
        tab.page.get_by_label("User").select_option("hugo")
        tab.page.get_by_role("button", name="Show").click()
        assert "user=hugo" in tab.page.url
        users = tab.page.locator("#queue .user").all_inner_texts()
        assert users
        assert {user.strip() for user in users} == {"hugo"}


def test_the_theme_is_switched_and_kept(browser: Browser, furnished: Scene) -> None:
    with Tab(browser) as tab:
        tab.enter(furnished.call(furnished.ticket("alice")))
        ground = "getComputedStyle(document.body).backgroundColor"
        light = tab.page.evaluate(ground)
        tab.page.locator("#theme").click()
        dark = tab.page.evaluate(ground)
        assert dark != light
        tab.page.goto(furnished.url + "/page/queue")
        assert tab.page.evaluate(ground) == dark
        assert tab.errors == []


def test_the_page_is_complete_without_javascript(browser: Browser, furnished: Scene) -> None:
    with Tab(browser, java_script_enabled=False) as tab:
        tab.enter(furnished.call(furnished.ticket("alice")))
        expect(tab.page.locator("#waiting")).to_contain_text("moe-pretrain")
        expect(tab.page.locator("#waiting time").first).to_contain_text("UTC")
        tab.page.locator("#waiting summary").first.click()
        expect(tab.page.locator("#waiting .causes li").first).to_be_visible()
        ground = tab.page.locator("body").evaluate("e => getComputedStyle(e).backgroundColor")
        tab.page.locator("#theme").click()
        expect(tab.page.locator("#waiting")).to_contain_text("moe-pretrain")
        assert ground  # and the form came back to where it was pressed
        assert tab.page.url == furnished.url + "/"


def test_without_javascript_the_theme_button_returns_to_the_confirmation(
    browser: Browser, furnished: Scene
) -> None:
    with Tab(browser, java_script_enabled=False) as tab:
        tab.enter(furnished.call(furnished.ticket("alice")))
        tab.page.locator("a", has_text="llama-pretrain").first.click()
        tab.page.wait_for_url("**/page/jobs/*")
        job = tab.page.url
        tab.page.get_by_text("Change the time limit").click()
        tab.page.get_by_role("button", name="Extend").click()
        expect(tab.page.locator("h1")).to_contain_text("Extend job")
        tab.page.locator("#theme").click()
        expect(tab.page).to_have_url(job)
        expect(tab.page.locator("#h-acts")).to_be_visible()


def test_times_are_in_the_time_zone_of_the_browser(browser: Browser, furnished: Scene) -> None:
    found: list[str] = []
    for zone in ("Europe/Berlin", "Asia/Kolkata"):
        with Tab(browser, timezone_id=zone) as tab:
            tab.enter(furnished.call(furnished.ticket("alice")))
            tab.page.goto(furnished.url + "/page/jobs/121")
            tab.wait_live()
            found.append(tab.page.locator("dd time").first.inner_text())
            expect(tab.page.locator("#zone")).to_have_text(re.compile("Berlin|Kolkata|Calcutta"))
    assert found[0] != found[1]


def test_the_hour_after_midnight_is_00(browser: Browser, furnished: Scene) -> None:
    """en-US has an hour 24 unless configured otherwise."""
    job = "/page/jobs/121"
    with Tab(browser, timezone_id="UTC") as tab:
        tab.enter(furnished.call(furnished.ticket("alice")))
        tab.page.goto(furnished.url + job)
        timestamp = tab.page.locator("dd time").first.get_attribute("datetime") or ""
        hour = int(timestamp[11:13])
    zone = f"Etc/GMT+{hour}" if hour <= 12 else f"Etc/GMT-{24 - hour}"
    with Tab(browser, timezone_id=zone, locale="en-US") as tab:
        tab.enter(furnished.call(furnished.ticket("alice")))
        tab.page.goto(furnished.url + job)
        tab.wait_live()
        shown = tab.page.locator("dd time").first.inner_text()
        assert f"00:{timestamp[14:16]}:" in shown, shown


def test_markup_in_names_does_nothing(browser: Browser, furnished: Scene) -> None:
    it = furnished
    nasty = "<img src=x onerror=document.title='owned'>"

    async def submit() -> int:
        return await it.submit("bob", name=nasty, gpus_per_node=8, gpu_type="h100",
                               time_limit_s=600, comment=f"</dd>{nasty}")  # fmt: skip

    job_id = it.call(submit())
    with Tab(browser) as tab:
        tab.enter(it.call(it.ticket("alice")))
        for path in ("/page/queue", f"/page/jobs/{job_id}", "/page/plan"):
            tab.page.goto(it.url + path)
            tab.wait_live()
            assert tab.page.locator("img").count() == 0
            assert "owned" not in tab.page.title()
        assert tab.errors == []
    it.call(it.ask("POST", f"/v1/jobs/{job_id}/cancel", {}))


def test_the_tour_takes_its_screenshots(browser: Browser, furnished: Scene) -> None:
    """Those of docs/operating/tour.md: `make pictures`."""
    with Tab(browser) as tab, Tab(browser, dark=True) as night, Tab(browser, width=390) as small:
        for one, path in ((tab, "/"), (night, "/page/plan"), (small, "/")):
            one.enter(furnished.call(furnished.ticket("alice")))
            one.page.goto(furnished.url + path)
            one.wait_live()
        keep_picture(small, "tour-telephone")
        keep_picture(night, "tour-plan")
        tab.page.set_viewport_size({"width": 1360, "height": 1960})
        keep_picture(tab, "tour-overview")
        tab.page.set_viewport_size({"width": 1360, "height": 620})
        tab.page.goto(furnished.url + "/page/queue?state=waiting")
        tab.wait_live()
        first = tab.page.locator("#queue > li").filter(has_text="moe-pretrain")
        first.locator("summary").click()
        expect(first.locator(".causes li").nth(1)).to_contain_text("holds")
        tab.page.mouse.move(0, 0)
        keep_picture(tab, "tour-why")
        assert [*tab.errors, *night.errors, *small.errors] == []


def come_in(tab: Tab, odc: Odc) -> None:
    """A user's own daemon signs in whoever opens the address; root's asks first."""
    address = odc.odcctl("page").stdout.strip()
    if os.geteuid() == 0:
        tab.enter(address)
    else:
        tab.page.goto(address)


def test_the_real_thing_of_the_tour(browser: Browser, odc: Odc) -> None:
    """odcd up, odcctl page, jobs that are processes: the output as it is written, and cancel."""
    odc.environment["ODC_LISTEN"] = "127.0.0.1:0"
    output = odc.up("--node", "n[1-2]=h100:8")
    assert re.search(r"page +http://127\.0\.0\.1:\d+ +\(.*odcctl page\)", output), output
    colour = r"printf '\033[?2004h\033[1;32mline 0\033[0m\n'; "
    count = colour + "n=0; while true; do n=$((n+1)); echo line $n; sleep 0.2; done"
    both = ("-N", "2", "--gres", "gpu:h100:8", "-t", "10", "--wrap")
    blocker = odc.submit("-J", "first", *both, count)
    odc.wait_for(blocker, "RUNNING")
    waiting = odc.submit("-J", "second", *both, "sleep 60")
    with Tab(browser) as tab:
        come_in(tab, odc)
        tab.wait_live()
        expect(tab.page.locator("#waiting")).to_contain_text("second")
        expect(tab.page.locator("#running")).to_contain_text("first")
        address = tab.page.url
        tab.page.goto(f"{address}page/jobs/{blocker}")
        expect(tab.page.locator("#log")).to_contain_text("line 3\nline 4")
        expect(tab.page.locator("#log")).to_contain_text("line 12")
        # A terminal's colours and control sequences are removed from the text.
        assert tab.page.locator("#log").inner_text().startswith("line 0\nline 1\n")
        keep_picture(tab, "tour-output")
        tab.page.locator("summary", has_text="Cancel").click()
        tab.page.locator("button", has_text="Yes, cancel it").click()
        expect(tab.page.locator(".notice")).to_contain_text("cancelled")
        expect(tab.page.locator("h1 .badge")).to_have_text("cancelled")
        expect(tab.page.locator("text=Yes, cancel it")).to_have_count(0)
        tab.page.goto(address)
        expect(tab.page.locator("#running")).to_contain_text("second")
        assert tab.errors == []
    odc.odcctl("cancel", str(waiting))
    wait(lambda: odc.job(waiting)["state"] == "CANCELLED", lambda: "not cancelled")


def test_a_killed_daemon_and_its_return_are_shown(browser: Browser, odc: Odc) -> None:
    odc.environment["ODC_LISTEN"] = f"127.0.0.1:{free_port()}"
    odc.up("--node", "n1=h100:8")
    job = odc.submit(
        "-t", "10", "--wrap", "n=0; while sleep 0.2; do n=$((n+1)); echo line $n; done"
    )
    odc.wait_for(job, "RUNNING")
    with Tab(browser) as tab:
        come_in(tab, odc)
        tab.wait_live()
        tab.page.goto(f"{tab.page.url}page/jobs/{job}")
        log, pulse = tab.page.locator("#log"), tab.page.locator("#pulse")
        expect(log).to_contain_text("line 3\nline 4")
        last = int(log.inner_text().split()[-1])
        kill(odc.pid)
        expect(pulse).to_contain_text("not live: as of")
        odc.up("--node", "n1=h100:8")
        expect(pulse).to_have_text("live")
        expect(log).to_contain_text(f"line {last + 20}")
        expect(log).to_contain_text("line 1\nline 2")
    odc.odcctl("cancel", str(job))
