// The page: asks, shows the answer as it is written, brings in mail. Text is set as text; nothing becomes markup.

const $ = (id) => document.getElementById(id);
const result = $("result");
const PATIENCE = 6_000; // milliseconds without a word before the page says why
const RECENT = 6;

// What this browser remembers. Both stores may be forbidden; then nothing is remembered.

const remembered = (store, key, fallback) => {
  try { return JSON.parse(store().getItem(key)) ?? fallback; } catch { return fallback; }
};
const remember = (store, key, value) => {
  try { store().setItem(key, JSON.stringify(value)); } catch { /* it works without */ }
};
const local = () => localStorage;
const session = () => sessionStorage;

const authorization = () => {
  const token = remembered(session, "token", "");
  return token ? { Authorization: `Bearer ${token}` } : {};
};

let unlocked = () => {}; // what to do once there is a token

function lock(retry) {
  unlocked = retry;
  show("locked");
  $("token").focus();
}

// Asking.

let asking = new AbortController();

function show(state, said = "") {
  result.dataset.state = state;
  const busy = state === "searching" || state === "writing";
  $("go").textContent = busy ? "Stop" : "Ask";
  $("again").hidden = !["unavailable", "offline", "stopped"].includes(state);
  result.setAttribute("aria-busy", busy);
  if (said) $("status").textContent = said;
}

function wait(text) {
  $("waiting").textContent = text;
  $("status").textContent = text;
}

async function ask(question, source) {
  asking.abort();
  const mine = asking = new AbortController();
  $("answer").textContent = $("took").textContent = "";
  list([], question);
  wait("Looking through the mail…");
  show("searching");
  recall(question);
  const patience = setTimeout(() => {
    if (!$("answer").textContent) wait("Still thinking. The first question after a while takes longer.");
  }, PATIENCE);
  try {
    const query = new URLSearchParams({ q: question, source });
    const response = await fetch(`brain/query/stream?${query}`, { headers: authorization(), signal: mine.signal });
    if (response.status === 401) lock(() => ask(question, source));
    else if (!response.ok) await refuse(response);
    else if (!(await read(response, question))) show("offline", "The connection broke off.");
  } catch (error) {
    if (mine.signal.aborted) return;
    show("offline", "No connection to the brain.");
  } finally {
    clearTimeout(patience);
  }
}

// Shows the events of an answer; whether the last one came.
async function read(response, question) {
  for await (const [event, data] of events(response)) {
    if (event === "sources") {
      list(data.sources, question);
      wait(data.sources.length ? `Reading ${count(data.sources.length, "email")}…` : "");
      show("writing");
    } else if (event === "text") {
      $("waiting").textContent = "";
      $("answer").textContent += data.text;
    } else if (event === "answer") {
      finish(data);
      return true;
    } else if (event === "error") {
      fail(data);
      return true;
    }
  }
  return false;
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s)));
      if (fields.event) yield [fields.event, JSON.parse(fields.data)];
    }
  }
}

function finish(answer) {
  $("answer").textContent = answer.answer;
  $("took").textContent = `${Math.max(answer.query_time_ms / 1000, 0.1).toFixed(1)} s`;
  result.dataset.confidence = answer.confidence;
  keep(answer.sources);
  show(answer.sources.length ? "done" : "abstained", answer.answer);
}

function fail(error) {
  $("answer").textContent = "";
  if (error.status === 422) {
    $("refusal").textContent = error.detail;
    show("refused", error.detail);
  } else show("unavailable", "The brain can’t answer right now.");
}

async function refuse(response) {
  const body = await response.json().catch(() => ({}));
  fail({ status: response.status, detail: typeof body.detail === "string" ? body.detail : "" });
}

// Sources.

function list(sources, question) {
  $("found").hidden = !sources.length;
  $("sources").replaceChildren(...sources.map((source) => card(source, question)));
}

// An answer may rest on fewer sources than were found.
function keep(sources) {
  const kept = new Set(sources.map(named));
  for (const item of [...$("sources").children]) if (!kept.has(item.dataset.source)) item.remove();
  $("found").hidden = !sources.length;
}

const named = (source) => `${source.score} ${source.attribution}`;

function card(source, question) {
  const item = $("card").content.firstElementChild.cloneNode(true);
  item.dataset.source = named(source);
  const $$ = (selector) => item.querySelector(selector);
  if (source.subject) $$(".found bdi").textContent = source.subject;
  if (source.date) $$(".day").textContent = source.date;
  $$(".kind").textContent = source.source_type;
  $$("meter").value = source.score;
  $$(".number").textContent = source.score.toFixed(2);
  concern($$, source.members);
  const details = $$("details");
  details.addEventListener("toggle", async () => {
    if (details.open && !details.dataset.shown && (await reveal(source, question, $$))) details.dataset.shown = "yes";
  });
  return item;
}

// Whose mail it is.

let family; // asked for once a passage is read

const members = async () => {
  const response = await fetch("brain/members", { headers: authorization() });
  return response.ok ? (await response.json()).members.map((member) => member.name) : [];
};

function concern($$, names) {
  $$(".whose").hidden = !names.length;
  $$(".whose bdi").textContent = names.join(", ");
}

async function assignable(source, $$) {
  const names = await (family ??= members()).catch(() => []);
  const form = $$(".assign");
  form.hidden = !names.length;
  form.member.replaceChildren(...names.map((name) => element("option", name)));
  if (source.members.length) form.member.value = source.members[0];
  form.onsubmit = async (event) => {
    event.preventDefault();
    const member = form.member.value;
    const headers = { ...authorization(), "Content-Type": "application/json" };
    const body = JSON.stringify({ source: source.id, member });
    const response = await fetch("brain/members", { method: "POST", headers, body }).catch(() => ({ ok: false }));
    if (response.ok) concern($$, [member]);
    $$(".assign [role=status]").textContent = response.ok ? "Noted." : "That did not work. Please try again.";
  };
}

// Fetches and shows a card's passage; whether that worked.
async function reveal(source, question, $$) {
  const text = $$(".passage");
  text.textContent = "…";
  try {
    const query = new URLSearchParams({ q: question });
    const path = `brain/source/${encodeURIComponent(source.id)}?${query}`;
    const response = await fetch(path, { headers: authorization() });
    const body = await response.json();
    if (!response.ok) throw new Error(body.detail);
    $$(".from").textContent = body.sender ? `From ${body.sender}` : "";
    text.replaceChildren(...marked(body.passage, body.matches));
    if (source.source_type !== "calendar") assignable(source, $$);
    return true;
  } catch {
    text.textContent = "The passage can’t be shown right now. Please try again.";
    return false;
  }
}

// The passage in pieces, those of the question's words marked.
function marked(passage, words) {
  if (!words.length) return [passage];
  const escaped = words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  const whole = new RegExp(`(?<![\\p{L}\\p{N}])(${escaped.join("|")})(?![\\p{L}\\p{N}])`, "gu");
  return passage.split(whole).map((piece, at) => (at % 2 ? element("mark", piece) : piece));
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

const count = (number, word) => `${number.toLocaleString()} ${word}${number === 1 ? "" : "s"}`;

// Recent questions, and the question in the address.

function recall(question) {
  const others = remembered(local, "recent", []).filter((one) => one !== question);
  remember(local, "recent", [question, ...others].slice(0, RECENT));
}

function showRecent() {
  const questions = remembered(local, "recent", []);
  $("recent").hidden = !questions.length;
  const links = questions.map((question) => {
    const item = document.createElement("li");
    const link = element("a", question);
    link.href = `./?${new URLSearchParams({ q: question })}`;
    link.dir = "auto";
    item.append(link);
    return item;
  });
  $("recent").querySelector("ul").replaceChildren(...links);
}

$("forget").addEventListener("click", () => {
  remember(local, "recent", []);
  showRecent();
  $("question").focus();
});

// The box grows with the question, also where CSS can't do it yet.
function fit() {
  if (CSS.supports("field-sizing", "content")) return;
  $("question").style.height = "auto";
  $("question").style.height = `${$("question").scrollHeight}px`;
}

$("question").addEventListener("input", fit);
$("question").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $("ask").requestSubmit();
});

const chosen = () => new FormData($("ask")).get("source");

function start(question, source) {
  fit();
  document.title = `${question} – Family Brain`;
  $("recent").hidden = true;
  ask(question, source);
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (result.getAttribute("aria-busy") === "true" && event.submitter === $("go")) {
    asking.abort();
    show("stopped", "Stopped.");
    return;
  }
  const question = $("question").value.trim();
  if (!question) return;
  const source = chosen();
  const query = new URLSearchParams(source === "all" ? { q: question } : { q: question, source });
  history.pushState(null, "", `./?${query}`);
  if (matchMedia("(hover: none)").matches) $("question").blur(); // the screen's keyboard would cover the answer
  start(question, source);
});

$("ask").addEventListener("change", (event) => {
  if (event.target.name === "source" && result.dataset.state !== "idle") $("ask").requestSubmit();
});

$("again").addEventListener("click", () => start($("question").value.trim(), chosen()));

$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  remember(session, "token", $("token").value.trim());
  $("token").value = "";
  show("idle");
  stats();
  unlocked();
});

function open() {
  asking.abort();
  const query = new URLSearchParams(location.search);
  const question = query.get("q")?.trim() ?? "";
  const source = query.get("source") ?? "all";
  $("question").value = question;
  for (const choice of $("ask").elements.source) choice.checked = choice.value === source;
  if (!chosen()) $("ask").elements.source[0].checked = true;
  if (question) return start(question, chosen());
  document.title = "Family Brain";
  list([]);
  show("idle");
  showRecent();
}

// What the brain holds.

async function stats() {
  try {
    const response = await fetch("brain/stats", { headers: authorization() });
    if (response.status === 401) return lock(open);
    if (!response.ok) return;
    const held = await response.json();
    const last = held.last_ingest && new Date(held.last_ingest).toLocaleDateString([], { dateStyle: "medium" });
    const [number, since] = $("holds").children;
    number.textContent = count(held.total_documents, "email");
    since.textContent = last ? `, last added ${last}` : "";
    $("holds").hidden = false;
    $("empty").hidden = held.total_documents > 0;
  } catch { /* the answer's own state says it better */ }
}

// Bringing mail in.

function upload(files) {
  if (!files.length) return;
  const body = new FormData();
  for (const file of files) body.append("files", file);
  const request = new XMLHttpRequest(); // fetch tells nothing of an upload's progress
  const bar = $("upload-bar");
  const report = (text, skipped = []) => {
    bar.hidden = true;
    $("upload-text").textContent = text;
    $("skipped").replaceChildren(...skipped.map(({ origin, reason }) => element("li", `${origin}: ${reason}`)));
  };
  report(`Sending ${count(files.length, "file")}…`);
  bar.hidden = $("upload").hidden = false;
  bar.value = 0;
  request.upload.addEventListener("progress", ({ loaded, total }) => { bar.value = total ? loaded / total : 0; });
  request.upload.addEventListener("load", () => {
    bar.removeAttribute("value");
    $("upload-text").textContent = "Reading the mail…";
  });
  request.addEventListener("error", () => report("No connection to the brain. Nothing was lost; please try again."));
  request.addEventListener("load", () => {
    if (request.status === 401) {
      report("The brain asks for its access token first.");
      return lock(() => upload(files));
    }
    const done = request.response ?? {};
    if (request.status !== 200) return report(typeof done.detail === "string" ? done.detail : "That did not work.");
    report(summary(done), done.skipped);
    stats();
  });
  request.responseType = "json";
  request.open("POST", "brain/ingest");
  for (const [name, value] of Object.entries(authorization())) request.setRequestHeader(name, value);
  request.send(body);
}

function summary({ new: added, updated, unchanged, skipped }) {
  const parts = [`${count(added, "new email")} added`];
  if (updated) parts.push(`${updated} updated`);
  if (unchanged) parts.push(`${unchanged} known already`);
  if (skipped.length) parts.push(`${skipped.length} could not be read`);
  return `${parts.join(", ")}.`;
}

$("files").addEventListener("change", ({ target }) => {
  upload([...target.files]);
  target.value = "";
});

for (const type of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(type, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    document.body.classList.toggle("dragging", type === "dragover");
    if (type === "drop") upload([...event.dataTransfer.files]);
  });
}

addEventListener("popstate", open);
$("add").hidden = false;
stats();
open();
