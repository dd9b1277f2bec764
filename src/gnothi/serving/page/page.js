"use strict";
// The live page: asks over /v1/chat/completions, streamed, and shows each event as it comes. Whatever a model, a passage or a
// person wrote becomes text nodes: there is no HTML from strings in this file.

const $ = id => document.getElementById(id);
const KEPT = 30, STORE = "gnothi.earlier", CHOSEN = "gnothi.setups", KEY = "gnothi.key", STOPPED = "You stopped it.";
/** Where an answer is from. */
const origin = full => !full.retrieved ? "from memory" : full.found_nothing ? "searched, nothing found" : full.sources.length ? "looked up" : "searched, nothing kept";
const ORIGIN = { memory: "from memory", knowledge: "from evidence", passages: "from evidence" };
const state = { setups: [], runs: [], stopping: null, domains: {} };

/** What the browser keeps; nothing where it may not, or where it is no JSON. */
function stored(area, name, otherwise) {
  try { return JSON.parse(window[area].getItem(name)) ?? otherwise; } catch { return otherwise; }
}
function store(area, name, value) {
  try { value === null ? window[area].removeItem(name) : window[area].setItem(name, JSON.stringify(value)); return true; } catch { return false; }
}
const mouse = matchMedia("(hover: hover)").matches;  // a phone would open its keyboard, or show handles

// --- making elements -------------------------------------------------------------------------------------------------

/** An element with properties and children; texts are cleaned of what could hide or reorder them. */
function h(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) key in made ? (made[key] = value) : made.setAttribute(key, value);
  made.append(...children.flat().filter(one => one !== null && one !== undefined && one !== "").map(one => one.nodeType ? one : plain(one)));
  return made;
}
/** Control characters become visible, those that turn the direction of text go. */
const plain = text => String(text)
  .replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "")
  .replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, found => String.fromCharCode(found === "\u007f" ? 0x2421 : 0x2400 + found.charCodeAt(0)));
const said = (text, tag = "bdi", properties = {}) => h(tag, { dir: "auto", ...properties }, text);
const soft = text => h("small", {}, text);
/** A link to this server alone. */
function link(url, text) {
  let target = null;
  try { target = new URL(url, location.href); } catch { /* no address: no link */ }
  return target && /^https?:$/.test(target.protocol) ? h("a", { href: target.href, target: "_blank", rel: "noopener" }, text) : h("span", {}, text);
}
const counted = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : what.endsWith("ch") ? "es" : "s"}`;
const number = value => value === null || value === undefined ? "not measured" : value.toFixed(2).replace("-", "−");
const took = seconds => seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;

// --- gauges: one scale for each signal -------------------------------------------------------------------------------

class Gauge {
  constructor(signal, score, threshold, verdict, words) {
    Object.assign(this, { signal, score, threshold, doubt: verdict === "retrieve" });
    const parts = { rail: h("div", { className: "rail" }), above: h("div", { className: "above" }), limit: h("div", { className: "limit" }), mark: h("div", { className: `mark${this.doubt ? " doubt" : ""}` }), name: h("div", { className: "name" }, Number.isFinite(threshold) ? `threshold ${number(threshold)}` : "") };
    this.parts = parts;
    this.element = h("div", { className: "gauge" }, parts.name,
      h("div", { className: "track", role: "img", "aria-label": words }, parts.rail, parts.above, parts.limit, parts.mark),
      h("div", { className: "ends" }, h("span", {}, "surer"), h("span", {}, "less sure")));
    const known = state.domains[signal] ??= { low: Infinity, high: -Infinity, gauges: [] };
    for (const value of [score, threshold]) if (Number.isFinite(value)) { known.low = Math.min(known.low, value); known.high = Math.max(known.high, value); }
    known.gauges.push(this);
    known.gauges.forEach(one => one.draw(known));
  }
  draw({ low, high }) {
    const pad = (high - low || Math.abs(high) || 1) * 0.15;
    const share = value => (100 * (value - low + pad)) / (high - low + 2 * pad), place = value => `${share(value)}%`;
    const { above, limit, mark, name } = this.parts, limited = Number.isFinite(this.threshold);
    limit.hidden = !limited;
    above.hidden = !limited && !this.doubt;
    above.style.left = limited ? place(this.threshold) : "0%";
    mark.style.left = Number.isFinite(this.score) ? place(this.score) : "98%";
    if (!limited) return;
    limit.style.left = name.style.left = place(this.threshold);
    name.style.transform = `translateX(-${place(this.threshold)})`;
  }
}

// --- one set-up's answer to one question -----------------------------------------------------------------------------

class Card {
  constructor(setup, events = []) {
    Object.assign(this, { setup, events: [], draft: "", drafts: 0, reading: false, found: {}, passages: null, signal: "" });
    this.status = h("span", { className: "state" }, "waiting");
    this.answer = said("…", "p", { className: "answer none" });
    this.from = h("p", { className: "from" });
    this.judge = h("div", { className: "judge", hidden: true });
    this.steps = h("div", { className: "steps" });
    this.lines = h("ol", {});
    this.all = h("details", { className: "more" }, h("summary", {}, "Everything that happened"), this.lines);
    this.element = h("article", { className: "card working", ariaLabel: setup },
      h("header", {}, h("h2", {}, setup), this.status, soft(subtitle(setup))),
      h("div", {}, this.answer, this.from, this.judge), this.steps,
      this.all);
    events.forEach(told => this.tell(told));
  }
  tell(told) {
    this.events.push(told);
    const { event, lines } = told, show = this[`on_${event.event}`];
    if (show) show.call(this, event, lines);
    for (const line of lines) this.lines.append(h("li", {}, h("span", { className: "label" }, line.label), h("div", {}, h("span", { className: "lead" }, line.lead), said(line.text))));
  }
  step(title, ...children) {
    const made = h("section", { className: "step" }, h("h3", {}, title), ...children);
    this.steps.append(made);
    return made;
  }
  on_drafted(event) {
    if (this.reading) { this.reading = false; this.step("Written with the passage", said(event.text || "(nothing said)", "p", { className: "draft" })); }
    else this.draft = event.text;
    this.status.textContent = "drafting";
  }
  on_written(event) { this.step("Written with what was found", said(event.text || "(nothing said)", "p", { className: "draft" })); }
  on_decided(event, lines) {
    if (event.kind !== "retrieve") return;
    const doubt = event.verdict === "retrieve", words = lines.map(line => line.text).join(" ").replace(/-(?=\d)/g, "−");
    // Without a threshold it is a choice among several: nothing was sure or unsure.
    const sure = event.threshold === null && event.signal ? ["Search", "Trust memory"] : ["Unsure: search", this.passages ? "Sure: no search" : "Sure: trust memory"];
    const verdict = doubt ? `◆ ${sure[0]}` : `● ${sure[1]}`;
    this.signal = event.signal;
    this.drafts += 1;
    const title = this.draft ? `Draft ${this.drafts}, ${this.passages ? "going on from there" : "from memory"}` : "Is memory enough?";
    this.step(title,
      this.draft ? said(this.draft, "p", { className: "draft" }) : null,
      event.signal ? new Gauge(event.signal, event.score, event.threshold, event.verdict, words).element : null,
      h("p", { className: "verdict" }, h("span", { className: `badge ${doubt ? "doubt" : "sure"}` }, verdict), " ", event.signal ? soft(words.replace(/: [^:]*$/, "")) : null));
    this.draft = "";
    this.status.textContent = doubt ? "unsure: searching" : "sure";
  }
  on_grouped(event) {
    const tries = event.groups.map(([answer, count]) => `${answer} ×${count}`).concat(event.unknown ? [`unknown ×${event.unknown}`] : []);
    this.draft = `${event.question} → ${tries.join(", ")}`;
  }
  on_searched(event) {
    this.passages = h("ol", { className: "passages" }, event.passages.map(one => {
      const { id, title, text } = one.passage;
      return (this.found[id] = h("li", { className: "passage" }, said(title || id, "b"), soft(`retriever ${number(one.score)}`), said(text, "p")));
    }));
    this.step("Search", h("p", {}, "“", said(event.query), "” ", soft(`${event.passages.length ? counted(event.passages.length, "passage") : "nothing found"}, ${took(event.seconds)}`)), this.passages);
    this.status.textContent = "reading what was found";
  }
  on_ranked(event) {
    const [first, second] = event.candidates;
    if (event.kind === "passage") {
      this.reading = true;
      event.candidates.forEach(([id, , score], place) => {
        const item = this.found[id];
        if (!item) return;
        item.classList.toggle("won", place === 0);
        const margin = second ? (second[2] ?? Infinity) - (score ?? Infinity) : 0;
        const why = place ? "not chosen" : `★ chosen: with it the model is surest${margin > 0 && Number.isFinite(margin) ? `, by ${number(margin)}` : ""}`;
        item.querySelector("small").replaceChildren(plain(`${why} (${this.signal || "uncertainty"} ${number(score)})`));
        if (place === 0) item.parentElement.prepend(item);
      });
    } else if (event.kind === "answer" && second) {
      const box = place => ([name, text, score]) => h("li", { className: `rival${place === name ? " won" : ""}` }, h("small", {}, `${place === name ? "★ chosen, " : ""}${this.origin(name)}`), said(text || "(none)", "b"), soft(`uncertainty ${number(score)}`));
      this.step(`${event.candidates.length} answers, the surest wins`, h("ul", { className: "rivals" }, event.candidates.map(box(first[0]))));
    }
  }
  /** SeaKR's reasoning is memory alone in its simple form; else what was read is in it, too. */
  origin(name) {
    if (name !== "rationales") return ORIGIN[name] ?? `from ${name}`;
    return described(this.setup)?.settings.form === "simple" ? "from memory" : "from its reasoning";
  }
  on_filtered(event) { this.step("Filter", soft(`${event.sentences.filter(one => one[3]).length} of ${counted(event.sentences.length, "sentence")} kept (${event.kind})`)); }
  on_picked(event) { this.step("Pick", soft(`${event.kept.length} of ${counted(event.kept.length + event.dropped.length, "passage")} ${event.kind}`)); }
  on_decomposed(event) { if (event.used) this.step("Smaller questions", h("ol", {}, event.quizzes.map(one => said(one, "li", { className: "draft" })))); }
  on_quiz_answered(event) { this.step(`Answer to question ${event.number}`, said(event.answer || "(none)", "p", { className: "draft" }), soft(`from ${event.source}`)); }

  done(full) {
    this.full = full;
    this.end(origin(full));
    this.answer.className = full.answer ? "answer" : "answer none";
    const marks = full.sources.map((source, place) => h("sup", {}, link(source.url, `[${place + 1}]`)));
    this.answer.replaceChildren(plain(full.answer || "No answer found."), ...marks);
    const usage = full.usage, doubt = full.probability_wrong, gated = full.decisions.some(one => one.kind === "retrieve");
    this.from.append(h("span", { className: `badge ${gated ? (full.retrieved ? "doubt" : "sure") : "plain"}` }, `${full.retrieved ? "◆" : "●"} ${origin(full)[0].toUpperCase()}${origin(full).slice(1)}`),
      ...full.sources.map((source, place) => h("span", {}, `[${place + 1}] `, link(source.url, source.cited))),
      soft([doubt === null ? "" : `P(wrong) ${doubt.toFixed(2)}`, counted(usage.retrievals, "search"), `${counted(usage.prompt_tokens + usage.generated_tokens, "token")}`, took(usage.seconds)].filter(Boolean).join(" · ")));
    if (full.question !== full.asked) this.from.append(soft("asked as: "), said(full.question));
    this.offer(full);
    this.element.append(about(this.setup, full.warnings));
  }
  fail(message, state = "failed") {
    this.error = message;
    this.end(state);
    this.all.hidden = !this.events.length;
    this.answer.className = "answer none";
    this.answer.textContent = "No answer.";
    this.from.append(h("span", { className: "failed" }, message));
  }
  end(words) { this.element.classList.remove("working"); this.status.textContent = words; }
  /** Right or wrong, where the server wants to know. */
  offer(full) {
    if (!described(this.setup)?.feedback) return;
    const note = h("span", { className: "soft", role: "status" });
    const buttons = [[true, "✓ Right"], [false, "✗ Wrong"]].map(([right, text]) => h("button", { type: "button", ariaPressed: "false", onclick: async event => {
      const pressed = event.currentTarget;
      try {
        const found = await call("v1/feedback", { id: full.id, right });
        buttons.forEach(one => { one.ariaPressed = String(one === pressed); });
        note.textContent = found.ok ? "Saved. Thank you." : await problem(found);
      } catch { note.textContent = "The server cannot be reached."; }
    } }, text));
    this.judge.append(h("span", { className: "soft" }, "Is it right?"), ...buttons, note);
    this.judge.hidden = false;
  }
  get record() { return { setup: this.setup, events: this.events, full: this.full, error: this.error }; }
}

const described = id => state.setups.find(one => one.id === id)?.gnothi;
function subtitle(id) {
  const found = described(id);
  return found ? [found.method, found.model, found.index && `index ${found.index}`].filter(Boolean).join(" · ") : "";
}
/** What a set-up's threshold rests on, whether it still holds, and what may mislead. */
function about(id, warnings = []) {
  const found = described(id), told = [];
  if (found?.calibration) {
    told.push(...found.calibration.words.map(text => h("li", {}, text)));
    const drift = found.calibration.drift;
    if (drift) told.push(h("li", { className: drift.state === "drift" ? "warn" : "" }, h("b", {}, `Scores: ${drift.state}. `), drift.advice));
  } else if (found?.gate) told.push(h("li", {}, `The threshold, ${number(found.gate.threshold)}, was not calibrated here: nothing is guaranteed.`));
  else told.push(h("li", {}, "No gate decides here, so there is no threshold and no guarantee."));
  const odd = [...new Set([...warnings, ...(found?.warnings ?? [])])];
  told.push(...odd.map(text => h("li", { className: "warn" }, text)));
  const alarms = odd.length + (found?.calibration?.drift?.state === "drift" ? 1 : 0);
  return h("details", { className: "more" },
    h("summary", {}, found?.calibration ? "What is guaranteed" : "About this set-up", alarms ? `: ⚠ ${counted(alarms, "warning")}` : ""), h("ul", {}, told));
}

// --- asking ----------------------------------------------------------------------------------------------------------

const key = () => stored("sessionStorage", KEY, "");
function call(path, body, signal) {
  const headers = { ...(key() && { authorization: `Bearer ${key()}` }), ...(body && { "content-type": "application/json" }) };
  return fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal, cache: "no-store" });
}
async function problem(response) {
  if (response.status === 401) askForKey();
  if (response.status === 401 && !key()) return "This server needs a key.";
  const found = await response.json().catch(() => null);
  return found?.error?.message ?? `The server answered with status ${response.status}.`;
}
/** What the events of a stream say, one by one. */
async function* chunks(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("data: ") && line !== "data: [DONE]") yield JSON.parse(line.slice(6));
  }
}
async function run(card, question, signal) {
  try {
    const filters = $("filter").value.split(";").map(one => one.trim()).filter(Boolean);
    const body = { model: card.setup, stream: true, messages: [{ role: "user", content: question }], ...(filters.length && { filters }) };
    const response = await call("v1/chat/completions", body, signal);
    if (!response.ok) return card.fail(await problem(response));
    card.status.textContent = "thinking";
    for await (const { gnothi, error } of chunks(response)) {
      if (error) return card.fail(error.message);
      if (gnothi?.event) card.tell(gnothi);
      else if (gnothi) card.done(gnothi);
    }
    if (!card.full) card.fail("The answer broke off.");
  } catch (error) {
    error.name === "AbortError" ? card.fail(STOPPED, "stopped") : card.fail("The server cannot be reached.");
  }
}
function show(question, cards) {
  $("welcome").hidden = true;
  $("answers").hidden = false;
  $("asked").replaceChildren(plain(question));
  $("cards").replaceChildren(...cards.map(card => card.element));
}
async function ask(question) {
  const chosen = [...$("setups").querySelectorAll(":checked")].map(one => one.value);
  if (!question || state.stopping) return;
  if (!chosen.length) return complain("Choose at least one way to answer.");
  complain("");
  state.domains = {};
  const cards = chosen.map(id => new Card(id)), stopping = state.stopping = new AbortController();
  show(question, cards);
  toggle(true);
  $("said").textContent = "Asking.";
  await Promise.all(cards.map(card => run(card, question, stopping.signal)));
  state.stopping = null;
  toggle(false);
  if (mouse && document.activeElement === $("question")) $("question").select();
  $("said").textContent = cards.map(card => `${card.setup}: ${card.full ? `${plain(card.full.answer || "no answer")}, ${origin(card.full)}` : card.error}`).join(". ");
  remember({ time: Date.now(), question, runs: cards.map(card => card.record) });
  load();
}
function toggle(running) {
  const focused = document.activeElement === $(running ? "send" : "stop");
  $("send").hidden = running;
  $("stop").hidden = !running;
  if (focused) (running ? $("stop") : $("question")).focus();
}
function complain(text) { $("problem").textContent = text; $("problem").hidden = !text; }

// --- what was asked before -------------------------------------------------------------------------------------------

const earlier = () => stored("localStorage", STORE, []);
/** The latest first, as many as there is room for. */
function remember(entry) {
  const all = [entry, ...earlier()].slice(0, KEPT);
  while (all.length && !store("localStorage", STORE, all)) all.pop();
  list();
}
function list() {
  const all = earlier();
  $("earlier").hidden = !all.length;
  $("earlier-list").replaceChildren(...all.map(entry => h("li", {}, h("button", { type: "button", onclick: () => again(entry) }, said(entry.question), soft(`${entry.runs.map(one => one.full?.answer || "no answer").join(" / ")} · ${new Date(entry.time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })}`)))));
}
function again(entry) {
  if (state.stopping) return;
  state.domains = {};
  show(entry.question, entry.runs.map(({ setup, events, full, error }) => {
    const card = new Card(setup, events);
    full ? card.done(full) : card.fail(error ?? "No answer.", error === STOPPED ? "stopped" : "failed");
    return card;
  }));
  $("question").value = entry.question;
  grow();
  close();
}

// --- the start -------------------------------------------------------------------------------------------------------

function askForKey() {
  $("key").hidden = false;
  $("key").open = true;
  $("key-field").focus();
}
async function load() {
  const response = await call("v1/models").catch(() => null);
  if (!response) return complain("The server cannot be reached.");
  if (!response.ok) return complain(await problem(response));
  state.setups = (await response.json()).data;
  $("key").hidden = !key();
  if (!$("setups").querySelector("input")) {
    const before = stored("localStorage", CHOSEN, []).filter(id => state.setups.some(one => one.id === id));
    state.setups.forEach(({ id, gnothi }, place) => {
      const box = h("input", { type: "checkbox", value: id, checked: before.length ? before.includes(id) : place === 0 });
      $("setups").append(h("label", { className: "chip", title: subtitle(id) }, box, h("span", {}, gnothi.setup)));
    });
    if (state.setups.some(one => one.gnothi.index === "lab")) {
      const tries = ["Who directed The Amber Harbour?", "Who leads the town hall of Feilmhaven?"];
      $("try").append(...tries.map(text => h("button", { type: "button", onclick: () => { $("question").value = text; ask(text); } }, text)));
      $("try").hidden = false;
    }
  }
  const found = await call("v1/runs").catch(() => null), runs = found?.ok ? (await found.json()).data : [];
  $("runs").hidden = !runs.length;
  $("runs-list").replaceChildren(...runs.map(one => h("li", {}, link(one.url, one.name))));
}
function grow() { const field = $("question"); field.style.height = "auto"; field.style.height = `${field.scrollHeight}px`; }
function close() { document.querySelectorAll(".menu[open]").forEach(one => { one.open = false; }); }

$("ask").addEventListener("submit", event => { event.preventDefault(); ask($("question").value.trim()); });
$("question").addEventListener("keydown", event => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); $("ask").requestSubmit(); } });
$("question").addEventListener("input", grow);
$("stop").addEventListener("click", () => state.stopping?.abort());
$("setups").addEventListener("change", () => store("localStorage", CHOSEN, [...$("setups").querySelectorAll(":checked")].map(one => one.value)));
$("forget").addEventListener("click", () => { store("localStorage", STORE, null); list(); close(); $("question").focus(); });
$("key-form").addEventListener("submit", event => { event.preventDefault(); store("sessionStorage", KEY, $("key-field").value.trim()); $("key-field").value = ""; close(); complain(""); load(); $("question").focus(); });
document.addEventListener("keydown", event => { if (event.key === "Escape") { const open = document.querySelector(".menu[open]"); open ? (close(), open.querySelector("summary").focus()) : state.stopping?.abort(); } });
document.addEventListener("click", event => { document.querySelectorAll(".menu[open]").forEach(one => { if (!one.contains(event.target)) one.open = false; }); });
list();
load();
if (mouse) $("question").focus();
