// Sends the trace files of a run to the server's upload interface, file by file, and goes on after a broken
// connection from what has arrived. Nothing passes through Streamlit, which would hold the files in memory.

const SIDE_BY_SIDE = 2;
const MOST_TRIES = 6;
const FIRST_WAIT = 3000; // ms for the page to go on to the run; longer each time, since a busy server needs longer
const UNITS = [[1 << 30, "GiB"], [1 << 20, "MiB"], [1 << 10, "KiB"], [1, "B"]];

export default function (component) {
  const root = component.parentElement.querySelector(".upload");
  if (!root.controller) root.controller = createController(root);
  root.controller.send = component.setTriggerValue;
}

function formatSize(bytes) {
  const [factor, unit] = UNITS.find(([limit]) => bytes >= limit) || UNITS[3];
  const value = bytes / factor;
  return `${factor === 1 ? value : value.toFixed(value >= 100 ? 0 : 1)} ${unit}`;
}

class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function interfaceUrl(path) {
  return new URL(`api/v1/${path}`, new URL(".", window.location.href)).href;
}

// Status 0: the connection broke.
function request(method, path, body, headers, onProgress, running) {
  return new Promise((resolve, reject) => {
    const call = new XMLHttpRequest();
    running.add(call);
    call.open(method, interfaceUrl(path));
    for (const [name, value] of Object.entries(headers)) call.setRequestHeader(name, value);
    if (onProgress) call.upload.onprogress = (event) => onProgress(event.loaded);
    call.onloadend = () => {
      running.delete(call);
      const answer = readJson(call.responseText);
      if (call.status >= 200 && call.status < 300) resolve(answer);
      else reject(new Refusal(call.status, describe(call.status, answer)));
    };
    call.send(body);
  });
}

function readJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function describe(status, answer) {
  if (answer && answer.message) return answer.message;
  if (status === 0) return "the connection to the server broke";
  if (status === 401) return "the server asks for its token: load this page again";
  if (status === 404 || status === 405) return "this server takes no uploads: start it with rankscope dashboard";
  return `the server answered with status ${status}`;
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function readTags(text) {
  const tags = {};
  for (const item of text.split(",").map((part) => part.trim()).filter(Boolean)) {
    const at = item.indexOf("=");
    if (at < 1) throw new Error(`"${item}" is no tag; expected key=value, such as branch=main`);
    tags[item.slice(0, at).trim()] = item.slice(at + 1).trim();
  }
  return tags;
}

// Files of what was dropped: folders are walked through.
async function collectDropped(items) {
  const entries = [...items].map((item) => item.webkitGetAsEntry && item.webkitGetAsEntry()).filter(Boolean);
  const found = [];
  while (entries.length) {
    const entry = entries.pop();
    if (entry.isFile) found.push(await new Promise((resolve, reject) => entry.file(resolve, reject)));
    else entries.push(...(await readFolder(entry)));
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function readFolder(folder) {
  const reader = folder.createReader();
  const all = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return all;
    all.push(...some);
  }
}

function guessName(files) {
  const path = files[0].webkitRelativePath || "";
  if (path.includes("/")) return path.split("/")[0];
  return files[0].name.replace(/(\.pt)?(\.trace)?\.json(\.gz)?$|\.tar(\.gz)?$|\.tgz$|\.zip$/i, "");
}

function createController(root) {
  const pick = (selector) => root.querySelector(selector);
  const [drop, facts, running, error] = [".drop", ".facts", ".running", ".error"].map(pick);
  const calls = new Set();
  const controller = { send: () => {} };
  let files = [];
  let isCancelled = false;

  function show(chosen) {
    files = [...chosen].filter((file) => file.size > 0);
    error.hidden = true;
    facts.hidden = files.length === 0;
    if (!files.length) return;
    const total = files.reduce((sum, file) => sum + file.size, 0);
    pick(".chosen").textContent = `${files.length} file${files.length > 1 ? "s" : ""}, ${formatSize(total)}`;
    facts.elements.name.value = guessName(files);
  }

  function fail(message) {
    error.textContent = message;
    error.hidden = false;
    running.hidden = true;
    facts.hidden = files.length === 0;
    drop.hidden = false;
  }

  function tell(share, text) {
    pick(".fill").style.width = `${(100 * share).toFixed(1)}%`;
    pick(".said").textContent = text;
  }

  async function upload() {
    isCancelled = false;
    error.hidden = true;
    facts.hidden = true;
    running.hidden = false;
    const wanted = {
      name: facts.elements.name.value.trim() || guessName(files),
      tags: readTags(facts.elements.tags.value),
      keep_traces: facts.elements.keep.checked,
      files: files.map((file) => ({ name: file.name, size_bytes: file.size })),
    };
    tell(0, "Starting ...");
    const json = { "content-type": "application/json" };
    const { run_id: run } = await request("POST", "runs", JSON.stringify(wanted), json, null, calls);
    try {
      await sendAll(run);
      tell(1, "Checking ...");
      await request("POST", `runs/${run}/complete`, "", {}, null, calls);
    } catch (fault) {
      request("DELETE", `runs/${run}`, null, {}, null, calls).catch(() => {});
      throw fault;
    }
    files = [];
    tell(1, "Opening the run ...");
    await leaveFor(run);
  }

  // Says that a run has arrived until the page has gone on to it: what is said while the page's socket is down is lost.
  async function leaveFor(run) {
    for (let wait = FIRST_WAIT; root.isConnected; wait *= 2) {
      controller.send("uploaded", run);
      await pause(wait);
    }
  }

  async function sendAll(run) {
    const sent = files.map(() => 0);
    const total = files.reduce((sum, file) => sum + file.size, 0);
    const waiting = files.map((_, number) => number);
    const report = () => {
      const done = sent.reduce((sum, bytes) => sum + bytes, 0);
      tell(done / total, `${formatSize(done)} of ${formatSize(total)} sent`);
    };
    const work = async () => {
      for (let number = waiting.shift(); number !== undefined; number = waiting.shift()) {
        await sendFile(run, number, (bytes) => {
          sent[number] = Math.min(bytes, files[number].size);
          report();
        });
      }
    };
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, work));
  }

  async function sendFile(run, number, onSent) {
    let offset = 0;
    for (let tries = 1; ; tries += 1) {
      try {
        const headers = { "upload-offset": String(offset), "content-type": "application/octet-stream" };
        const body = files[number].slice(offset);
        await request("PUT", `runs/${run}/files/${number}`, body, headers, (bytes) => onSent(offset + bytes), calls);
        onSent(files[number].size);
        return;
      } catch (fault) {
        const canGoOn = fault.status === 0 || fault.status === 409 || fault.status === 503;
        if (isCancelled || !canGoOn || tries >= MOST_TRIES) throw fault;
        await pause(300 * 2 ** tries);
        const state = await request("GET", `runs/${run}/files`, null, {}, null, calls).catch(() => null);
        if (state) offset = state.files[number].received_bytes;
      }
    }
  }

  for (const button of root.querySelectorAll("[data-pick]")) {
    button.addEventListener("click", (event) => {
      event.stopPropagation();
      pick(`[data-input="${button.dataset.pick}"]`).click();
    });
  }
  for (const input of root.querySelectorAll("[data-input]")) {
    input.addEventListener("change", () => {
      show(input.files);
      input.value = "";
    });
    input.addEventListener("click", (event) => event.stopPropagation());
  }
  drop.addEventListener("click", () => pick('[data-input="files"]').click());
  drop.addEventListener("keydown", (event) => {
    if (event.target === drop && (event.key === "Enter" || event.key === " ")) pick('[data-input="files"]').click();
  });
  drop.addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", async (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    show(await collectDropped(event.dataTransfer.items));
  });
  facts.addEventListener("submit", (event) => {
    event.preventDefault();
    upload().catch((fault) => fail(isCancelled ? "The upload was cancelled." : `Not uploaded: ${fault.message}`));
  });
  pick(".cancel").addEventListener("click", () => show([]));
  window.addEventListener("pagehide", () => {
    isCancelled = true;
    for (const call of calls) call.abort();
  });
  return controller;
}
