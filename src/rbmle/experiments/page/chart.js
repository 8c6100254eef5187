"use strict";
// Regret curves by uPlot: point at a round or a line, and the legend says each policy's regret there.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const hidden = new Set(); // policies, in all charts
  const bands = 3; // of the best policies; the others have theirs when they are pointed at
  const near = 24; // pixels from a line within which it is pointed at
  const gap = 15; // pixels between two names at the ends of lines
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const figures = [...document.querySelectorAll("figure.chart")];
  const charts = figures.map((figure, place) => chart(figure, data.charts[place]));
  const toggle = document.getElementById("bands");
  if (toggle) toggle.addEventListener("click", () => {
    const all = document.body.classList.toggle("all-bands");
    toggle.setAttribute("aria-pressed", all);
    for (const each of charts) each.redraw();
  });
  dark.addEventListener("change", () => charts.forEach((each) => each.redraw()));
  addEventListener("beforeprint", () => charts.forEach((each) => each.fit()));

  function chart(figure, problem) {
    const place = figure.querySelector(".plot");
    const readout = figure.querySelector(".legend p");
    const last = problem.rounds.length - 1;
    const end = problem.rounds[last];
    const values = new Map();
    const buttons = new Map();
    let at = last; // the point whose regrets the legend shows
    let focused = null; // the policy that is pointed at
    let isMoved = false; // the cursor, by a key

    for (const line of problem.lines) legendEntry(line);
    const plot = new uPlot(options(), columns(), place);
    place.addEventListener("keydown", key);
    new ResizeObserver(fit).observe(place);
    show(last);
    return { fit, redraw: () => plot.redraw(false), update };

    // The mean of a line, and the upper and the lower end of its band.
    function columns() {
      const found = [problem.rounds];
      for (const line of problem.lines) {
        const edge = (sign) => line.mean.map((mean, i) => (line.std ? mean + sign * line.std[i] : null));
        found.push(line.mean, edge(1), edge(-1));
      }
      return found;
    }

    function options() {
      const font = `12px ${getComputedStyle(document.body).fontFamily}`;
      const axis = {
        stroke: () => tone("--quiet"), grid: { stroke: () => tone("--rule"), width: 1 },
        ticks: { show: false }, font, labelFont: font, labelSize: 20, labelGap: 0,
        values: (_, splits) => splits.map(number),
      };
      return {
        ...size(),
        padding: [8, () => room(), 0, 0],
        scales: { x: { time: false, range: [0, end] }, y: { range: () => [0, top()] } },
        axes: [
          { ...axis, label: "round", size: 24, gap: 4, space: 70 },
          { ...axis, label: "cumulative regret", size: 52, gap: 6, space: 44 },
        ],
        series: [{}, ...problem.lines.flatMap(series)],
        bands: problem.lines.map((line, i) => ({ series: [3 * i + 2, 3 * i + 3], fill: () => shade(line) })),
        legend: { show: false },
        cursor: { drag: { setScale: false, x: false, y: false }, y: false, points: { show: dot } },
        hooks: { setCursor: [follow], draw: [names] },
      };
    }

    function series(line) {
      const { colour, width, dashes } = data.styles[line.policy];
      const ends = { scale: "y", stroke: "transparent", width: 0, points: { show: false } };
      const mean = {
        scale: "y", label: line.title, width: pixels(width), dash: dashes.map(pixels), points: { show: false },
        stroke: () => faded(colour, focused === null || focused === line.policy ? 1 : 0.22),
      };
      return [mean, ends, ends];
    }

    function shade(line) {
      const isShown = focused === null
        ? best().has(line.policy) || document.body.classList.contains("all-bands")
        : focused === line.policy;
      return isShown ? faded(data.styles[line.policy].colour, focused === null ? 0.13 : 0.22) : "transparent";
    }

    function dot(_, place) {
      if (place % 3 !== 1) return null;
      const made = element("div", { class: "dot" });
      made.style.background = data.styles[problem.lines[(place - 1) / 3].policy].colour;
      return made;
    }

    function shown() {
      return problem.lines.filter((line) => !hidden.has(line.policy));
    }

    function best() {
      const ranked = shown().sort((a, b) => a.mean[last] - b.mean[last]);
      return new Set(ranked.slice(0, bands).map((line) => line.policy));
    }

    // Uniform play leaves the frame if it would hide the others, as in labels.py.
    function top() {
      const others = shown().filter((line) => line.policy !== data.reference);
      const worst = Math.max(0, ...others.map((line) => line.mean[last]));
      const reference = shown().find((line) => line.policy === data.reference);
      if (worst && reference && reference.mean[last] > data.clipped * worst) return data.room * worst;
      const best3 = best();
      const tops = shown().map((line) => line.mean[last] + (line.std && best3.has(line.policy) ? line.std[last] : 0));
      return Math.max(...tops, 0) * 1.03 || 1;
    }

    function size() {
      const width = Math.max(place.clientWidth, 240);
      return { width, height: Math.round(Math.min(Math.max(width * 0.58, 260), 420)) };
    }

    // Pixels for the names at the ends of lines; on a narrow page the legend alone has them.
    function room() {
      const { width } = size();
      if (width < 560) return 24;
      const context = document.createElement("canvas").getContext("2d");
      context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
      const longest = Math.max(0, ...shown().map((line) => context.measureText(`${line.title} ↑`).width));
      return 28 + Math.min(longest, width * 0.3);
    }

    function names(u) {
      if (size().width < 560) return;
      const ratio = u.ctx.canvas.width / u.width;
      const { left, top: above, width, height } = u.bbox;
      const lines = shown();
      const ends = lines.map((line) => above + height - u.valToPos(Math.min(line.mean[last], u.scales.y.max), "y", true));
      const places = spread(ends, gap * ratio, height);
      u.ctx.save();
      u.ctx.textBaseline = "middle";
      u.ctx.textAlign = "left";
      lines.forEach((line, i) => {
        const isBeyond = line.mean[last] > u.scales.y.max;
        const isQuiet = focused !== null && focused !== line.policy;
        const y = above + height - places[i];
        u.ctx.globalAlpha = isQuiet ? 0.3 : 1;
        u.ctx.strokeStyle = data.styles[line.policy].colour;
        u.ctx.lineWidth = ratio;
        u.ctx.beginPath();
        u.ctx.moveTo(left + width, above + height - ends[i]);
        u.ctx.lineTo(left + width + 16 * ratio, y);
        if (!isBeyond) u.ctx.stroke();
        u.ctx.fillStyle = tone("--text");
        u.ctx.font = `${focused === line.policy ? "600 " : ""}${12 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
        const widest = u.ctx.canvas.width - (left + width + 22 * ratio);
        u.ctx.fillText(fitted(u.ctx, line.title, isBeyond ? " ↑" : "", widest), left + width + 20 * ratio, y);
      });
      u.ctx.restore();
    }

    function legendEntry(line) {
      const { colour, width, dashes } = data.styles[line.policy];
      const button = element("button", { type: "button", "aria-pressed": "true" });
      const swatch = element("canvas", { class: "swatch", width: 88, height: 20, "aria-hidden": "true" });
      const context = swatch.getContext("2d");
      context.strokeStyle = colour;
      context.lineWidth = 2 * pixels(width);
      context.setLineDash(dashes.map((dash) => 2 * pixels(dash)));
      context.beginPath();
      context.moveTo(2, 10);
      context.lineTo(86, 10);
      context.stroke();
      const value = element("span", { class: "value" });
      button.append(swatch, element("span", { class: "name" }, line.title), value);
      button.addEventListener("click", () => hide(line.policy));
      for (const type of ["pointerenter", "focus"]) button.addEventListener(type, () => focus(line.policy));
      for (const type of ["pointerleave", "blur"]) button.addEventListener(type, () => focus(null));
      const item = element("li", {});
      item.append(button);
      figure.querySelector(".legend ul").append(item);
      values.set(line.policy, value);
      buttons.set(line.policy, button);
    }

    // Show and hide what was clicked in any legend.
    function update() {
      plot.batch(() => problem.lines.forEach((line, i) => {
        for (const part of [1, 2, 3]) plot.setSeries(3 * i + part, { show: !hidden.has(line.policy) });
      }));
      for (const [policy, button] of buttons) button.setAttribute("aria-pressed", !hidden.has(policy));
      fit();
    }

    function fit() {
      plot.setSize(size());
    }

    function follow(u) {
      const { idx, top: height } = u.cursor;
      const isAway = idx === null || idx === undefined;
      show(isAway ? last : idx);
      if (isMoved) return;
      const away = (line) => Math.abs(u.valToPos(line.mean[idx], "y") - height);
      const [line] = isAway ? [] : shown().sort((a, b) => away(a) - away(b));
      focus(line && away(line) <= near ? line.policy : null);
    }

    function focus(policy) {
      const found = hidden.has(policy) ? null : policy;
      if (found === focused) return;
      focused = found;
      for (const [each, button] of buttons) button.classList.toggle("chosen", each === policy);
      plot.redraw(false);
    }

    function show(point) {
      at = Math.min(Math.max(point, 0), last);
      const round = problem.rounds[at];
      readout.textContent = `Regret after round ${number(round)}, mean ± std`;
      for (const line of problem.lines) {
        const std = line.std ? line.std[at].toFixed(1) : "–";
        values.get(line.policy).textContent = `${line.mean[at].toFixed(1)} ± ${std}`;
      }
      place.setAttribute("aria-valuenow", round);
      place.setAttribute("aria-valuetext", `round ${number(round)}`);
    }

    function key(event) {
      const far = Math.max(Math.round(last / 10), 1);
      const moves = {
        ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1,
        PageDown: at - far, PageUp: at + far, Home: 0, End: last,
      };
      if (!(event.key in moves)) return;
      event.preventDefault();
      const point = Math.min(Math.max(moves[event.key], 0), last);
      isMoved = true;
      plot.setCursor({ left: plot.valToPos(problem.rounds[point], "x"), top: 0 });
      isMoved = false;
      show(point);
    }
  }

  function hide(policy) {
    if (!hidden.delete(policy)) hidden.add(policy);
    for (const each of charts) each.update();
  }

  // The heights moved as little as keeps neighbours a gap apart, as in labels.py.
  function spread(heights, gap, highest) {
    const order = heights.map((_, i) => i).sort((a, b) => heights[a] - heights[b]);
    const blocks = [];
    order.forEach((i, rank) => {
      blocks.push({ mean: heights[i] - rank * gap, size: 1 });
      while (blocks.length > 1 && blocks.at(-2).mean > blocks.at(-1).mean) {
        const { mean, size } = blocks.pop();
        const before = blocks.at(-1);
        before.mean = (before.mean * before.size + mean * size) / (before.size + size);
        before.size += size;
      }
    });
    const means = blocks.flatMap(({ mean, size }) => Array(size).fill(mean));
    const room = highest - (heights.length - 1) * gap;
    const found = [];
    order.forEach((i, rank) => { found[i] = Math.max(Math.min(means[rank], room), 0) + rank * gap; });
    return found;
  }

  // A name with its mark, shortened to so many pixels.
  function fitted(context, name, mark, widest) {
    let short = name;
    while (short && context.measureText(`${short}${short === name ? "" : "…"}${mark}`).width > widest) short = short.slice(0, -1);
    return `${short}${short === name ? "" : "…"}${mark}`;
  }

  function tone(name) {
    return getComputedStyle(document.body).getPropertyValue(name).trim();
  }

  function faded(colour, part) {
    return colour + Math.round(255 * part).toString(16).padStart(2, "0");
  }

  function pixels(points) {
    return (points * 4) / 3;
  }

  function number(value) {
    return value.toLocaleString("en", { maximumFractionDigits: 2 });
  }

  function element(tag, attributes, words = "") {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = words;
    return made;
  }
})();
