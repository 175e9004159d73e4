// Draws the columns of #timeline-data on a canvas. Each frame draws at most two rectangles per pixel and track:
// what is narrower than a pixel at the current zoom is merged, so that 100,000 events stay fluent.
"use strict";
(function () {
  const data = JSON.parse(document.getElementById("timeline-data").textContent);
  const box = document.getElementById("timeline");
  const scroll = box.querySelector(".scroll");
  const canvas = box.querySelector("canvas");
  const tooltip = box.querySelector(".tooltip");
  const pen = canvas.getContext("2d");

  const RULER = 24;
  const LANE_GAP = 3;
  const RANK_GAP = 12;
  const HEIGHTS = { annotations: 15, device: 18, thread: 18, exposed: 9 };
  const MOST_TRACKS = 6; // nested events deeper than this share the last track
  const SHORTEST_VIEW = 20; // ns
  const WORDS = {
    compute: "compute",
    hidden: "communication",
    exposed: "exposed communication",
    memory: "memory",
    annotation: "annotation",
    waiting: "waiting for a peer",
  };

  // --- data -------------------------------------------------------------------------------------------

  function decode(text, Type) {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return new Type(bytes.buffer);
  }

  function decodeLane(lane) {
    const Times = data.times === "int32" ? Int32Array : Float64Array;
    return {
      ...lane,
      starts: decode(lane.starts, Times),
      durations: decode(lane.durations, Times),
      names: decode(lane.names, Int32Array),
      classes: decode(lane.classes, Uint8Array),
    };
  }

  // Splits a lane into tracks whose events do not overlap, so that nested annotations stand below one another.
  function splitTracks(lane) {
    const free = []; // end of the last event of each track
    const members = [];
    for (let i = 0; i < lane.starts.length; i++) {
      let track = free.findIndex((end) => end <= lane.starts[i]);
      if (track < 0) track = Math.min(free.length, MOST_TRACKS - 1);
      if (track === free.length) {
        free.push(-Infinity);
        members.push([]);
      }
      free[track] = Math.max(free[track], lane.starts[i] + lane.durations[i]);
      members[track].push(i);
    }
    return members.map((rows) => makeTrack(lane, Int32Array.from(rows)));
  }

  function makeTrack(lane, rows) {
    const reach = new Float64Array(rows.length); // latest end up to here: sorted even if events overlap
    let latest = -Infinity;
    rows.forEach((row, i) => {
      latest = Math.max(latest, lane.starts[row] + lane.durations[row]);
      reach[i] = latest;
    });
    return { lane, rows, reach, height: HEIGHTS[lane.kind], top: 0 };
  }

  function layOut(lanes) {
    let top = 0;
    let rank = null;
    const tracks = [];
    for (const lane of lanes) {
      if (rank !== null && lane.rank !== rank) top += RANK_GAP;
      lane.isFirst = lane.rank !== rank;
      rank = lane.rank;
      lane.top = top;
      for (const track of splitTracks(lane)) {
        track.top = top;
        tracks.push(track);
        top += track.height + 1;
      }
      lane.bottom = top - 1;
      top += LANE_GAP;
    }
    return { tracks, height: top };
  }

  const lanes = data.lanes.map(decodeLane);
  const { tracks, height: contentHeight } = layOut(lanes);

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

  // --- view -------------------------------------------------------------------------------------------

  const whole = { start: data.start, end: Math.max(data.end, data.start + SHORTEST_VIEW) };
  const view = { ...whole };
  const size = { width: 0, height: 0, gutter: 0 };
  let colors = {};
  let pointer = null;
  let isPending = false;
  let rectangles = 0;

  function scale() {
    return (size.width - size.gutter) / (view.end - view.start);
  }

  function timeAt(x) {
    return view.start + (x - size.gutter) / scale();
  }

  function setView(start, end) {
    const span = Math.min(Math.max(end - start, SHORTEST_VIEW), whole.end - whole.start);
    view.start = Math.min(Math.max(start, whole.start), whole.end - span);
    view.end = view.start + span;
    requestDraw();
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
      draw();
    });
  }

  function resize() {
    const width = scroll.clientWidth;
    const limit = parseFloat(getComputedStyle(scroll).maxHeight);
    const height = Math.min(contentHeight + RULER, limit);
    const ratio = window.devicePixelRatio || 1;
    Object.assign(size, { width, height, gutter: width < 560 ? 92 : 168 });
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    // The canvas stays in place while the box scrolls; the margin below it gives the box its full length.
    canvas.style.marginBottom = `${contentHeight + RULER - height}px`;
    requestDraw();
  }

  function readColors() {
    const style = getComputedStyle(document.documentElement);
    const names = [...Object.keys(WORDS), "text", "quiet", "rule", "line", "card"];
    colors = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    requestDraw();
  }

  // --- drawing ----------------------------------------------------------------------------------------

  function partOf(lane, row) {
    return lane.part || data.parts[lane.classes[row]];
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, size.width, size.height);
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    pen.textBaseline = "middle";
    rectangles = 0;
    drawRuler();
    pen.save();
    pen.beginPath();
    pen.rect(0, RULER, size.width, size.height - RULER);
    pen.clip();
    lanes.forEach(drawLabel);
    pen.beginPath();
    pen.rect(size.gutter, RULER, size.width - size.gutter, size.height - RULER);
    pen.clip();
    tracks.forEach(drawTrack);
    pen.restore();
    canvas.dataset.rectangles = String(rectangles);
    canvas.dataset.view = `${view.start} ${view.end}`;
    canvas.dataset.frames = String(Number(canvas.dataset.frames || 0) + 1);
  }

  function isVisible(top, bottom) {
    return bottom >= 0 && top <= size.height - RULER;
  }

  function drawTrack(track) {
    const top = track.top - scroll.scrollTop;
    if (!isVisible(top, top + track.height)) return;
    const { lane, rows } = track;
    const k = scale();
    let thin = null;
    for (let i = findAbove(track.reach, view.start); i < rows.length; i++) {
      const row = rows[i];
      if (lane.starts[row] >= view.end) break;
      const left = size.gutter + (lane.starts[row] - view.start) * k;
      const width = lane.durations[row] * k;
      if (width >= 1) {
        thin = flush(thin, track, top);
        drawEvent(track, row, left, width, top);
        continue;
      }
      const pixel = Math.floor(left);
      if (thin && thin.pixel !== pixel) thin = flush(thin, track, top);
      thin = thin || { pixel, covered: 0, part: "", most: -1 };
      thin.covered += width;
      if (width > thin.most) Object.assign(thin, { most: width, part: partOf(lane, row) });
    }
    flush(thin, track, top);
  }

  // One pixel column for all events narrower than it, the fainter the less of it they fill.
  function flush(thin, track, top) {
    if (thin) {
      pen.globalAlpha = Math.min(1, Math.max(0.35, thin.covered));
      fill(thin.part, thin.pixel, top, 1, track.height);
      pen.globalAlpha = 1;
    }
    return null;
  }

  function fill(part, x, top, width, height) {
    pen.fillStyle = colors[part];
    pen.fillRect(x, RULER + top, width, height);
    rectangles += 1;
  }

  function drawEvent(track, row, left, width, top) {
    const part = partOf(track.lane, row);
    const from = Math.max(left, size.gutter - 1);
    const to = Math.min(left + width, size.width + 1);
    const gap = to - from > 3 ? 0.6 : 0;
    fill(part, from, top, to - from - gap, track.height);
    if (to - from < 34 || track.height < 12) return;
    pen.fillStyle = part === "compute" ? "#ffffff" : part === "annotation" ? colors.text : "#20242b";
    const name = fit(data.names[track.lane.names[row]], to - from - 8);
    pen.fillText(name, from + 4, RULER + top + track.height / 2 + 0.5);
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
    const top = lane.top - scroll.scrollTop;
    const bottom = lane.bottom - scroll.scrollTop;
    if (!isVisible(top, bottom)) return;
    const middle = RULER + top + HEIGHTS[lane.kind] / 2 + 0.5;
    if (lane.isFirst && top > 0) {
      pen.fillStyle = colors.line;
      pen.fillRect(0, RULER + top - RANK_GAP / 2 - 1, size.width, 1);
    }
    const isNarrow = size.gutter < 100;
    pen.fillStyle = colors.text;
    if (lane.isFirst) pen.fillText(isNarrow ? String(lane.rank) : `rank ${lane.rank}`, 0, middle);
    const left = isNarrow ? 20 : 52;
    const label = isNarrow ? lane.label.replace(/^GPU \d+ /, "") : lane.label;
    pen.fillStyle = colors.quiet;
    pen.save();
    pen.font = pen.font.replace("12px", "11px");
    pen.fillText(fit(label, size.gutter - left - 6), left, middle);
    pen.restore();
  }

  function drawRuler() {
    const step = chooseStep((view.end - view.start) / Math.max(2, (size.width - size.gutter) / 110));
    pen.textAlign = "center";
    for (let time = Math.ceil(view.start / step) * step; time <= view.end; time += step) {
      const x = size.gutter + (time - view.start) * scale();
      pen.fillStyle = colors.rule;
      pen.fillRect(x, RULER - 4, 1, size.height);
      pen.fillStyle = colors.quiet;
      const text = formatTime(time, step);
      const half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.min(Math.max(x, size.gutter + half), size.width - half), RULER / 2 - 2);
    }
    pen.textAlign = "left";
  }

  function chooseStep(least) {
    const power = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least) || 10 * power;
  }

  // --- words ------------------------------------------------------------------------------------------

  const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];

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

  // --- pointer and keys -------------------------------------------------------------------------------

  function findEvent(x, y) {
    const top = y - RULER + scroll.scrollTop;
    const track = tracks.find((t) => top >= t.top && top <= t.top + t.height);
    if (!track || x < size.gutter || y < RULER) return null;
    const { lane, rows } = track;
    const slack = 2 / scale(); // two pixels, so that thin events can be hit
    const time = timeAt(x);
    let best = null;
    let nearest = slack;
    for (let i = findAbove(track.reach, time - slack); i < rows.length; i++) {
      const start = lane.starts[rows[i]];
      if (start > time + slack) break;
      const distance = Math.max(start - time, time - start - lane.durations[rows[i]], 0);
      if (distance <= nearest) [best, nearest] = [rows[i], distance];
      if (distance === 0) break;
    }
    return best === null ? null : { lane, row: best };
  }

  function showTooltip(x, y) {
    const found = findEvent(x, y);
    tooltip.hidden = !found;
    if (!found) return;
    const { lane, row } = found;
    const name = document.createElement("b");
    name.textContent = data.names[lane.names[row]];
    const start = formatTime(lane.starts[row], (view.end - view.start) / 1000);
    const facts = document.createElement("span");
    facts.textContent =
      `${WORDS[partOf(lane, row)]} · ${formatDuration(lane.durations[row])} · starts at ${start}` +
      ` · rank ${lane.rank}, ${lane.label}`;
    tooltip.replaceChildren(name, facts);
    const left = Math.min(x + scroll.offsetLeft + 14, box.clientWidth - tooltip.offsetWidth - 8);
    tooltip.style.left = `${Math.max(8, left)}px`;
    tooltip.style.top = `${y + scroll.offsetTop + 18}px`;
  }

  function place(event) {
    const frame = canvas.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  }

  function move(event) {
    const { x, y } = place(event);
    if (!pointer) return showTooltip(x, y);
    const shift = (pointer.x - x) / scale();
    setView(view.start + shift, view.end + shift);
    if (event.pointerType === "mouse") scroll.scrollTop += pointer.y - y;
    pointer = { x, y };
  }

  canvas.addEventListener("pointerdown", (event) => {
    pointer = place(event);
    tooltip.hidden = true;
    canvas.setPointerCapture(event.pointerId);
    canvas.style.cursor = "grabbing";
  });
  canvas.addEventListener("pointermove", move);
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, () => {
      pointer = null;
      canvas.style.cursor = "";
    });
  }
  canvas.addEventListener("pointerleave", () => {
    tooltip.hidden = true;
  });
  canvas.addEventListener(
    "wheel",
    (event) => {
      const isWhole = view.end - view.start >= whole.end - whole.start;
      // Zooming out of the whole is left to the page, so that the wheel does not get caught here.
      if (event.shiftKey || (isWhole && event.deltaY > 0)) return;
      event.preventDefault();
      tooltip.hidden = true;
      zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * 0.002))), Math.max(place(event).x, size.gutter));
    },
    { passive: false },
  );

  const middle = () => (size.gutter + size.width) / 2;
  const actions = {
    in: () => zoom(0.5, middle()),
    out: () => zoom(2, middle()),
    reset: () => setView(whole.start, whole.end),
    left: () => setView(view.start - (view.end - view.start) / 5, view.end - (view.end - view.start) / 5),
    right: () => setView(view.start + (view.end - view.start) / 5, view.end + (view.end - view.start) / 5),
  };
  const keys = { "+": "in", "=": "in", "-": "out", 0: "reset", ArrowLeft: "left", ArrowRight: "right" };
  canvas.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    actions[keys[event.key]]();
  });
  canvas.addEventListener("dblclick", actions.reset);
  for (const button of box.querySelectorAll("button[data-do]")) {
    button.addEventListener("click", actions[button.dataset.do]);
  }

  scroll.addEventListener("scroll", requestDraw);
  window.addEventListener("resize", resize);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColors);
  readColors();
  resize();
})();
