// Draws the part of a timeline that the server sends, at once; asks the server for the part in view when it has
// come to rest. The server merges what is narrower than a pixel, so that no more arrives than can be seen.

const RULER = 26;
const TRACK_GAP = 1;
const LANE_GAP = 3;
const RANK_GAP = 13;
const GUTTER = 178;
const HEIGHTS = { annotations: 15, device: 19, thread: 19, exposed: 9 };
const SHORTEST_VIEW = 20; // ns
const REST_MS = 140;
const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];

export default function (component) {
  const root = component.parentElement.querySelector(".timeline");
  if (!root.controller) root.controller = createController(root);
  root.controller.update(component.data, component.setStateValue);
  return () => root.controller.stop();
}

// --- data -----------------------------------------------------------------------------------------------

function decode(text, Type) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Type(bytes.buffer);
}

function decodeLane(lane, Times) {
  const starts = decode(lane.starts, Times);
  const durations = decode(lane.durations, Times);
  const reach = new Float64Array(starts.length); // latest end up to here: sorted even where events overlap
  let latest = -Infinity;
  for (let i = 0; i < starts.length; i++) {
    latest = Math.max(latest, starts[i] + durations[i]);
    reach[i] = latest;
  }
  const rest = { names: decode(lane.names, Int32Array), classes: decode(lane.classes, Uint8Array) };
  return { ...lane, ...rest, starts, durations, reach, counts: decode(lane.counts, Int32Array) };
}

// Rows of the picture: the tracks of a lane stand close together, the lanes of a rank a little apart.
function layOut(lanes) {
  let top = 0;
  let before = null;
  for (const lane of lanes) {
    const isNewRank = !before || before.rank !== lane.rank;
    lane.isFirst = isNewRank || before.label !== lane.label || before.kind !== lane.kind;
    lane.opensRank = isNewRank;
    if (before) top += isNewRank ? RANK_GAP : lane.isFirst ? LANE_GAP : TRACK_GAP;
    lane.top = top;
    lane.height = HEIGHTS[lane.kind];
    top += lane.height;
    before = lane;
  }
  return top;
}

// First index whose value is above the limit, in a sorted column.
function findAbove(column, limit) {
  let low = 0;
  let high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

// --- words ----------------------------------------------------------------------------------------------

function formatTime(ns, step) {
  const [factor, unit] = UNITS.find(([limit]) => Math.max(Math.abs(ns), step) >= limit) || UNITS[3];
  const digits = Math.max(0, Math.ceil(Math.log10(factor / step) - 1e-9));
  return `${(ns / factor).toFixed(Math.min(digits, 9))} ${unit}`;
}

function formatDuration(ns) {
  const [factor, unit] = UNITS.find(([limit]) => ns >= limit) || UNITS[3];
  const value = ns / factor;
  if (factor === 1) return `${Math.round(ns)} ns`;
  return `${value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)} ${unit}`;
}

function chooseStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least) || 10 * power;
}

function paragraph(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

// --- the picture ----------------------------------------------------------------------------------------

function createController(root) {
  const scroll = root.querySelector(".scroll");
  const canvas = root.querySelector("canvas");
  const tip = root.querySelector(".tip");
  const pen = canvas.getContext("2d");
  const size = { width: 0, height: 0 };
  const view = { start: 0, end: 1 };
  let data = null;
  let lanes = [];
  let contentHeight = 0;
  let whole = { start: 0, end: 1 };
  let send = () => {};
  let timer = 0;
  let isPending = false;
  let asked = "";
  let pinned = null;

  function update(fresh, setStateValue) {
    send = setStateValue;
    const isNewRun = !data || data.run !== fresh.run;
    data = fresh;
    const Times = data.times === "int32" ? Int32Array : Float64Array;
    lanes = data.lanes.map((lane) => decodeLane(lane, Times));
    contentHeight = layOut(lanes);
    whole = { start: data.start, end: Math.max(data.end, data.start + SHORTEST_VIEW) };
    if (isNewRun) {
      Object.assign(view, { start: data.view[0], end: data.view[1] });
      pinned = null;
      root.querySelector(".details").replaceChildren(paragraph("p", "Click an event to keep its facts here."));
    }
    drawLegend();
    resize();
  }

  function stop() {
    clearTimeout(timer);
    observer.disconnect();
  }

  function scale() {
    return (size.width - GUTTER) / (view.end - view.start);
  }

  function timeAt(x) {
    return view.start + (x - GUTTER) / scale();
  }

  function setView(start, end) {
    const span = Math.min(Math.max(end - start, SHORTEST_VIEW), whole.end - whole.start);
    view.start = Math.min(Math.max(start, whole.start), whole.end - span);
    view.end = view.start + span;
    tip.hidden = true;
    requestDraw();
    clearTimeout(timer);
    timer = setTimeout(ask, REST_MS);
  }

  // The server answers with the events in view, merged for this width.
  function ask() {
    const wanted = [Math.floor(view.start), Math.ceil(view.end), Math.round(size.width - GUTTER)];
    if (wanted[2] <= 0 || asked === String(wanted)) return;
    asked = String(wanted);
    send("view", wanted);
  }

  function zoom(factor, x) {
    const fixed = timeAt(x);
    setView(fixed - (fixed - view.start) * factor, fixed + (view.end - fixed) * factor);
  }

  function requestDraw() {
    if (isPending) return;
    isPending = true;
    requestAnimationFrame(() => {
      isPending = false;
      if (data) draw();
    });
  }

  function resize() {
    const width = scroll.clientWidth;
    const height = Math.min(contentHeight + RULER + 6, 640);
    const ratio = window.devicePixelRatio || 1;
    if (width !== size.width || height !== size.height || canvas.width !== Math.round(width * ratio)) {
      Object.assign(size, { width, height });
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
    }
    // The canvas stays in place while the box scrolls; the margin gives the box its full length.
    canvas.style.marginBottom = `${Math.max(contentHeight + RULER + 6 - height, 0)}px`;
    requestDraw();
  }

  function partOf(lane, row) {
    return lane.part || data.parts[lane.classes[row]];
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, size.width, size.height);
    pen.font = `12px ${getComputedStyle(root).fontFamily}`;
    pen.textBaseline = "middle";
    drawRuler();
    pen.save();
    pen.beginPath();
    pen.rect(0, RULER, size.width, size.height - RULER);
    pen.clip();
    lanes.forEach(drawLabel);
    pen.beginPath();
    pen.rect(GUTTER, RULER, size.width - GUTTER, size.height - RULER);
    pen.clip();
    let drawn = 0;
    for (const lane of lanes) drawn += drawLane(lane);
    pen.restore();
    root.querySelector(".range").textContent =
      `${formatDuration(view.end - view.start)} from ${formatTime(view.start, (view.end - view.start) / 1000)}`;
    canvas.dataset.view = `${Math.round(view.start)} ${Math.round(view.end)}`;
    canvas.dataset.cut = `${data.cut[0]} ${data.cut[1]} ${data.cut[2]}`;
    canvas.dataset.rectangles = String(drawn);
  }

  function isVisible(lane) {
    const top = lane.top - scroll.scrollTop;
    return top + lane.height >= 0 && top <= size.height - RULER;
  }

  function drawLane(lane) {
    if (!isVisible(lane)) return 0;
    const top = RULER + lane.top - scroll.scrollTop;
    const k = scale();
    let drawn = 0;
    for (let i = findAbove(lane.reach, view.start); i < lane.starts.length; i++) {
      if (lane.starts[i] >= view.end) break;
      const left = Math.max(GUTTER + (lane.starts[i] - view.start) * k, GUTTER - 1);
      const right = Math.min(GUTTER + (lane.starts[i] + lane.durations[i] - view.start) * k, size.width + 1);
      drawEvent(lane, i, left, Math.max(right - left, 0.75), top);
      drawn += 1;
    }
    return drawn;
  }

  function drawEvent(lane, row, left, width, top) {
    const part = partOf(lane, row);
    const isPinned = pinned && pinned.lane === lane && pinned.row === row;
    pen.fillStyle = data.colors[part];
    pen.fillRect(left, top, width - (width > 3 ? 0.6 : 0), lane.height);
    if (isPinned) {
      pen.strokeStyle = data.colors.text;
      pen.lineWidth = 2;
      pen.strokeRect(left, top + 1, Math.max(width, 2), lane.height - 2);
    }
    if (width < 36 || lane.height < 13) return;
    pen.fillStyle = part === "compute" ? "#ffffff" : part === "annotation" ? data.colors.text : "#20242b";
    pen.fillText(fit(data.names[lane.names[row]], width - 8), left + 4, top + lane.height / 2 + 0.5);
  }

  // The text, cut to a width in pixels.
  function fit(text, width) {
    let kept = text;
    for (let full = pen.measureText(kept).width; full > width && kept.length > 1; full = pen.measureText(kept).width) {
      const letters = Math.min(Math.floor((kept.length * width) / full), kept.length - 1);
      kept = `${kept.slice(0, Math.max(letters - 1, 0))}…`;
    }
    return kept;
  }

  function drawLabel(lane) {
    if (!lane.isFirst || !isVisible(lane)) return;
    const top = RULER + lane.top - scroll.scrollTop;
    const middle = top + lane.height / 2 + 0.5;
    if (lane.opensRank && lane.top > 0) {
      pen.fillStyle = data.colors.line;
      pen.fillRect(0, top - RANK_GAP / 2 - 1, size.width, 1);
    }
    pen.fillStyle = data.colors.text;
    if (lane.opensRank) {
      pen.font = pen.font.replace("12px", "600 12px");
      pen.fillText(`rank ${lane.rank}`, 10, middle);
      pen.font = pen.font.replace("600 12px", "12px");
    }
    pen.globalAlpha = 0.7;
    pen.fillText(fit(lane.label, GUTTER - 72), 66, middle);
    pen.globalAlpha = 1;
  }

  function drawRuler() {
    const step = chooseStep((view.end - view.start) / Math.max(2, (size.width - GUTTER) / 110));
    pen.textAlign = "center";
    for (let time = Math.ceil(view.start / step) * step; time <= view.end; time += step) {
      const x = GUTTER + (time - view.start) * scale();
      pen.fillStyle = data.colors.line;
      pen.fillRect(x, RULER - 5, 1, size.height);
      pen.fillStyle = data.colors.text;
      pen.globalAlpha = 0.75;
      const text = formatTime(time, step);
      const half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.min(Math.max(x, GUTTER + half), size.width - half - 4), RULER / 2 - 1);
      pen.globalAlpha = 1;
    }
    pen.textAlign = "left";
  }

  function drawLegend() {
    root.querySelector(".legend").replaceChildren(
      ...data.legend.map(([part, label]) => {
        const item = document.createElement("span");
        const mark = document.createElement("i");
        mark.style.background = data.colors[part];
        item.append(mark, label);
        return item;
      }),
    );
  }

  // --- pointer and keys ---------------------------------------------------------------------------------

  function findEvent(x, y) {
    const top = y - RULER + scroll.scrollTop;
    const lane = lanes.find((candidate) => top >= candidate.top && top <= candidate.top + candidate.height);
    if (!lane || x < GUTTER || y < RULER) return null;
    const slack = 2 / scale(); // two pixels, so that thin events can be hit
    const time = timeAt(x);
    let best = null;
    let nearest = slack;
    for (let i = findAbove(lane.reach, time - slack); i < lane.starts.length; i++) {
      if (lane.starts[i] > time + slack) break;
      const distance = Math.max(lane.starts[i] - time, time - lane.starts[i] - lane.durations[i], 0);
      if (distance <= nearest) [best, nearest] = [i, distance];
      if (distance === 0) break;
    }
    return best === null ? null : { lane, row: best };
  }

  function describe({ lane, row }) {
    const kind = data.words[partOf(lane, row)];
    const count = lane.counts[row];
    const start = formatTime(lane.starts[row], Math.max((view.end - view.start) / 1000, 1));
    const place = `rank ${lane.rank}, ${lane.label}`;
    if (count > 1) {
      return [`${count} events of ${kind}`, `${formatDuration(lane.durations[row])} together · from ${start} · ${place} · zoom in to see each`];
    }
    return [data.names[lane.names[row]], `${kind} · ${formatDuration(lane.durations[row])} · starts at ${start} · ${place}`];
  }

  function showTip(x, y) {
    const found = findEvent(x, y);
    tip.hidden = !found;
    if (!found) return;
    const [title, facts] = describe(found);
    tip.replaceChildren(paragraph("b", title), paragraph("span", facts));
    const box = root.getBoundingClientRect();
    const origin = canvas.getBoundingClientRect();
    const left = Math.min(x + origin.left - box.left + 14, size.width - tip.offsetWidth - 6);
    tip.style.left = `${Math.max(left, 6)}px`;
    tip.style.top = `${y + origin.top - box.top + 16}px`;
  }

  function pin(x, y) {
    pinned = findEvent(x, y);
    const shown = pinned ? describe(pinned) : ["", "Click an event to keep its facts here."];
    root.querySelector(".details").replaceChildren(paragraph("b", shown[0]), paragraph("p", shown[1]));
    requestDraw();
  }

  function place(event) {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const { x, y } = place(event);
    drag = { x, y, start: view.start, end: view.end, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const { x, y } = place(event);
    if (!drag) return showTip(x, y);
    if (Math.abs(x - drag.x) > 3) drag.moved = true;
    if (!drag.moved) return undefined;
    canvas.classList.add("moving");
    const shift = (x - drag.x) / ((size.width - GUTTER) / (drag.end - drag.start));
    return setView(drag.start - shift, drag.end - shift);
  });
  canvas.addEventListener("pointerup", (event) => {
    const { x, y } = place(event);
    if (drag && !drag.moved) pin(x, y);
    drag = null;
    canvas.classList.remove("moving");
  });
  canvas.addEventListener("pointerleave", () => {
    tip.hidden = true;
  });
  canvas.addEventListener("dblclick", (event) => {
    const { x, y } = place(event);
    const found = findEvent(x, y);
    if (!found) return;
    const { lane, row } = found;
    const margin = Math.max(lane.durations[row] * 0.08, SHORTEST_VIEW);
    setView(lane.starts[row] - margin, lane.starts[row] + lane.durations[row] + margin);
  });
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (event.shiftKey) return; // scrolls the ranks
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const shift = event.deltaX / scale();
        setView(view.start + shift, view.end + shift);
        return;
      }
      zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * 0.002))), Math.max(place(event).x, GUTTER));
    },
    { passive: false },
  );

  const middle = () => (GUTTER + size.width) / 2;
  const move = (part) => setView(view.start + (view.end - view.start) * part, view.end + (view.end - view.start) * part);
  const actions = {
    in: () => zoom(0.5, middle()),
    out: () => zoom(2, middle()),
    left: () => move(-0.25),
    right: () => move(0.25),
    all: () => setView(whole.start, whole.end),
  };
  const keys = { "+": "in", "=": "in", "-": "out", 0: "all", ArrowLeft: "left", ArrowRight: "right" };
  canvas.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    actions[keys[event.key]]();
  });
  for (const button of root.querySelectorAll("button[data-do]")) {
    button.addEventListener("click", actions[button.dataset.do]);
  }
  scroll.addEventListener("scroll", requestDraw);
  const observer = new ResizeObserver(resize);
  observer.observe(scroll);

  return { update, stop };
}
