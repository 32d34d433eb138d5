// Keeps the page live, which is complete without it: applies changes from server-sent events, shows times in
// the viewer's time zone, loads reasons on click, and follows a job's output. No dependencies.
"use strict";
(() => {
  const body = document.body;
  const today = new Intl.DateTimeFormat(undefined, {hour: "2-digit", minute: "2-digit", hourCycle: "h23"});
  const later = new Intl.DateTimeFormat(undefined, {month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23"});
  const full = new Intl.DateTimeFormat(undefined, {year: "numeric", month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23"});
  const exact = new Intl.DateTimeFormat(undefined, {hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23"});
  const day = new Intl.DateTimeFormat(undefined, {month: "short", day: "2-digit"});

  function localize(root) {
    const now = new Date().toDateString();
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (isNaN(at)) continue;
      const form = time.dataset.form === "full" ? full : at.toDateString() === now ? today : later;
      time.textContent = form.format(at);
      time.title = full.format(at);
    }
    for (const text of root.querySelectorAll("text[data-at]")) {
      const at = new Date(text.dataset.at);
      text.textContent = (text.dataset.zoom === "7d" ? day : today).format(at);
    }
  }

  function moveNow() {
    const line = document.getElementById("now");
    const axis = document.querySelector(".ticks[data-from]");
    if (!line || !axis) return;
    const from = Date.parse(axis.dataset.from), to = Date.parse(axis.dataset.to);
    const at = Math.min(Math.max((Date.now() - from) / (to - from), 0), 1) * 100 + "%";
    line.setAttribute("x1", at);
    line.setAttribute("x2", at);
  }

  // Open details and the focus are kept when their element is replaced.
  function kept(element) {
    const open = [...element.querySelectorAll("details")].map((one) => [one.open, one.querySelector(".more")]);
    const all = [...element.querySelectorAll("a, summary, button, input, select")];
    return {open, focus: all.indexOf(document.activeElement)};
  }
  function restore(element, was) {
    [...element.querySelectorAll("details")].forEach((one, at) => {
      if (!was.open[at]?.[0]) return;
      one.open = true;
      const more = one.querySelector(".more");
      if (one.dataset.why && more && was.open[at][1]) more.replaceWith(was.open[at][1]);
    });
    if (was.focus >= 0) element.querySelectorAll("a, summary, button, input, select")[was.focus]?.focus({preventScroll: true});
  }
  function fill(element, html) {
    const was = kept(element);
    element.innerHTML = html;
    localize(element);
    restore(element, was);
  }

  function apply(update) {
    if (update.reload) return location.reload();
    for (const [id, html] of Object.entries(update.parts ?? {})) {
      const element = document.getElementById(id);
      if (element) fill(element, html);
    }
    for (const [id, rows] of Object.entries(update.rows ?? {})) {
      const list = document.getElementById(id);
      if (!list) continue;
      const there = new Map([...list.children].map((item) => [item.dataset.key, item]));
      for (const [key, html] of Object.entries(rows.html)) {
        let item = there.get(key);
        if (!item) {
          item = document.createElement("li");
          item.dataset.key = key;
          item.className = "fresh";
          there.set(key, item);
        }
        fill(item, html);
      }
      if (!rows.keys) continue;
      const focused = document.activeElement;
      let next = list.firstElementChild;
      for (const key of rows.keys) {
        const item = there.get(key);
        if (!item) continue;
        if (item === next) next = next.nextElementSibling;
        else list.insertBefore(item, next);
      }
      const keys = new Set(rows.keys);
      for (const [key, item] of there) if (!keys.has(key)) item.remove();
      if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({preventScroll: true});
    }
    moveNow();
    ended();
  }

  // Reload when the job ends, because an ended job has other buttons.
  let wasEnded = null;
  function ended() {
    const now = document.querySelector("[data-ended]")?.dataset.ended;
    if (wasEnded === "no" && now === "yes") location.reload();
    wasEnded = now ?? wasEnded;
  }

  // A hidden tab closes its connection, because browsers allow six per server.
  const pulse = document.getElementById("pulse");
  const SILENT_MS = 40000, PATIENCE_MS = 2000; // the server sends something every 15 s
  let source = null, version = body.dataset.version, heard = Date.now(), lostAt = null;
  function say(word, kind) {
    if (!pulse || pulse.textContent === word) return;
    pulse.textContent = word;
    pulse.className = "pulse " + kind;
  }
  function live() {
    lostAt = null;
    say("live", "on");
  }
  function lost(at) {
    lostAt ??= at;
    say("not live: as of " + exact.format(lostAt), "lost");
  }
  function connect() {
    if (!body.dataset.live || source || document.hidden) return;
    const made = new EventSource(body.dataset.live + "&seen=" + encodeURIComponent(version));
    let open = false;
    const hear = () => (heard = Date.now());
    source = made;
    made.onopen = () => {
      open = true;
      hear();
      live();
    };
    made.addEventListener("beat", hear);
    made.onmessage = (event) => {
      hear();
      version = event.lastEventId || version;
      const update = JSON.parse(event.data);
      apply(update);
      if (update.as_of) lost(new Date(update.as_of));
      else live();
    };
    made.onerror = () => {
      if (open) hear();
      open = false;
      const at = heard;
      setTimeout(() => document.hidden || source?.readyState === EventSource.OPEN || lost(at), PATIENCE_MS);
      if (made.readyState !== EventSource.CLOSED) return;
      source = null;
      stayIn();
      setTimeout(connect, 5000);
    };
  }
  // After a logout in another tab, or the end of the key, do not keep showing old data.
  async function stayIn() {
    const answer = await fetch("/page/mine.css", {method: "HEAD"}).catch(() => null);
    if (answer?.status === 401) location.reload();
  }
  function disconnect() {
    if (source?.readyState === EventSource.OPEN) heard = Date.now();
    source?.close();
    source = null;
  }
  function listen() {
    if (!source || Date.now() - heard < SILENT_MS) return;
    lost(heard);
    if (source.readyState !== EventSource.OPEN) return;
    source.close();
    source = null;
    connect();
  }
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => event.persisted && connect());

  document.addEventListener("toggle", async (event) => {
    const details = event.target;
    if (!(details instanceof HTMLDetailsElement) || !details.open || !details.dataset.why || details.dataset.read) return;
    details.dataset.read = "yes";
    try {
      const answer = await fetch(details.dataset.why);
      if (!answer.ok) return;
      const more = details.querySelector(".more");
      const link = more.querySelector("p:last-child");
      const causes = document.createElement("div");
      causes.innerHTML = await answer.text();
      localize(causes);
      more.replaceChildren(causes, link);
    } catch {
      delete details.dataset.read;
    }
  }, true);

  const theme = document.getElementById("theme");
  theme?.addEventListener("click", (event) => {
    event.preventDefault();
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    document.cookie = `odc-theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
  });

  // The ticket's user has certainly opened the address, so no click is needed. A page that the browser only
  // prerenders does not submit.
  const enter = document.querySelector("form[data-at-once]");
  if (enter && document.prerendering) document.addEventListener("prerenderingchange", () => enter.submit(), {once: true});
  else enter?.submit();

  // Follow the end of a job's output.
  const KEPT = 200000, AGAIN_MS = 5000;
  const logs = document.getElementById("logs");
  let reading = null, noted = "";
  // Escape sequences of terminals; the second pattern matches an incomplete one at the end.
  const CODES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])/g;
  const BEGUN = /\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]{0,999}\x1b?|[ -/]*)$/;
  function written(text) {
    const held = BEGUN.exec(text)?.[0] ?? "";
    return [text.slice(0, text.length - held.length).replace(CODES, ""), held];
  }
  function note(log, text) {
    if (noted !== text) log.append((log.textContent && !log.textContent.endsWith("\n") ? "\n" : "") + text);
    noted = text;
  }
  async function follow() {
    reading?.abort();
    const mine = (reading = new AbortController());
    const log = document.getElementById("log");
    let fresh = true, held = "", text;
    const query = new URLSearchParams({
      follow: "true",
      stream: document.getElementById("stream").value,
      rank: document.getElementById("rank")?.value ?? "0",
    });
    try {
      const answer = await fetch(`${logs.dataset.logs}?${query}`, {signal: mine.signal});
      if (!answer.ok) {
        const plain = answer.headers.get("content-type")?.startsWith("text/plain");
        note(log, plain ? await answer.text() : "(The output cannot be read now.)");
        if (answer.status >= 500) again(mine);
        return;
      }
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const {value, done} = await reader.read();
        if (done) break;
        if (fresh) log.textContent = noted = "";
        fresh = false;
        const below = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
        [text, held] = written(held + value);
        log.append(text);
        if (log.textContent.length > 2 * KEPT) log.textContent = log.textContent.slice(-KEPT);
        if (below) log.scrollTop = log.scrollHeight;
      }
      if (fresh) log.textContent = "The job wrote nothing.";
    } catch {
      // The page was left, or another stream was chosen; or the daemon or its executor is gone.
      again(mine);
    }
  }
  function again(mine) {
    setTimeout(() => mine === reading && !mine.signal.aborted && follow(), AGAIN_MS);
  }
  if (logs) {
    const choose = () => {
      document.getElementById("log").textContent = noted = "";
      follow();
    };
    for (const id of ["stream", "rank"]) document.getElementById(id)?.addEventListener("change", choose);
    addEventListener("pagehide", () => reading?.abort());
    follow();
  }

  const zone = document.getElementById("zone");
  if (zone) zone.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
  localize(document);
  moveNow();
  ended();
  connect();
  setInterval(moveNow, 10000);
  setInterval(listen, 10000);
})();
