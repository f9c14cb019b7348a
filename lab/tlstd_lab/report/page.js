"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("script");

  const find = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const read = (id) => {
    const block = document.getElementById(id);
    return block ? JSON.parse(block.textContent) : null;
  };
  const decoded = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return null; // an address that is none of ours
    }
  };
  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  // --- light and dark ---------------------------------------------------------------------------------------------

  const theme = find("#theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const nameTheme = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", isDark() ? "Switch to light colours" : "Switch to dark colours");
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  prefersDark.addEventListener("change", nameTheme);
  nameTheme();

  // --- questions --------------------------------------------------------------------------------------------------

  const folds = all("details.question");
  const search = find("#search");
  if (search) {
    const rows = all(".claims tbody tr").map((row) => ({ row, words: row.textContent.toLowerCase() }));
    const buttons = all(".choice");
    const unfold = find("#unfold");
    const total = find("#found").textContent;
    let verdict = "";
    const filter = () => {
      const wanted = search.value.trim().toLowerCase().split(/\s+/);
      const filtered = Boolean(verdict || search.value.trim());
      let shown = 0;
      for (const { row, words } of rows) {
        const fits = (!verdict || row.dataset.verdict === verdict) && wanted.every((word) => words.includes(word));
        row.hidden = !fits;
        shown += fits;
      }
      for (const fold of folds) {
        const fits = all(".claims tbody tr", fold).some((row) => !row.hidden);
        fold.hidden = filtered && !fits;
        fold.open = filtered && fits;
      }
      for (const part of all(".folds")) part.hidden = all("details.question", part).every((fold) => fold.hidden);
      find("#found").textContent = filtered ? `${shown} of ${rows.length} claims are shown.` : total;
      find("#nothing").hidden = shown > 0;
    };
    for (const button of buttons) {
      button.addEventListener("click", () => {
        verdict = button.dataset.verdict;
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
        filter();
      });
    }
    search.addEventListener("input", filter);
    unfold.addEventListener("click", () => {
      const open = unfold.getAttribute("aria-expanded") === "false";
      for (const fold of folds) fold.open = open;
      unfold.setAttribute("aria-expanded", String(open));
      unfold.textContent = open ? "Fold all" : "Unfold all";
    });
    // a link to what is folded away or filtered out shows it
    const reveal = () => {
      const target = document.getElementById(decoded(location.hash.slice(1)));
      const fold = target && target.closest("details.question");
      if (!fold) return;
      if (fold.hidden || target.hidden) {
        search.value = "";
        buttons[0].click();
      }
      fold.open = true;
      target.scrollIntoView();
    };
    addEventListener("hashchange", reveal);
    reveal();
  }

  // --- charts -----------------------------------------------------------------------------------------------------

  const REACH = 26; // units of the drawing within which a line has a point at the place that is looked at

  function readable(plot, data) {
    const svg = find("svg", plot);
    const guide = find(".guide", svg);
    const groups = all("g.series", svg);
    const box = svg.viewBox.baseVal;
    const vertical = data.along === "y"; // cases, one below the other
    const reach = vertical ? 0 : REACH;
    const middle = vertical ? box.height / 2 : box.width / 2;
    const values = element("div", { class: "values", hidden: "" });
    const scrub = element("div", {
      class: "scrub", tabindex: "0", role: "slider", "aria-orientation": vertical ? "vertical" : "horizontal",
      "aria-valuemin": "1",
      "aria-label": `Read values of ${find("title", svg).textContent}`,
    });
    plot.append(values, scrub);
    let places = [];
    let at = -1;

    const shownSeries = () => data.series.map((_, i) => i).filter((i) => !groups[i].classList.contains("off"));
    const update = () => {
      const found = shownSeries().flatMap((i) => data.series[i].points.map((point) => point[0]));
      places = [...new Set(found)].sort((a, b) => a - b);
      scrub.setAttribute("aria-valuemax", String(Math.max(places.length, 1)));
      if (!scrub.hasAttribute("aria-valuenow")) scrub.setAttribute("aria-valuenow", "1");
    };
    const hide = () => {
      at = -1;
      values.hidden = true;
      guide.setAttribute("visibility", "hidden");
    };
    const show = (number) => {
      if (!places.length) return hide();
      at = clamp(number, 0, places.length - 1);
      const here = places[at];
      guide.setAttribute(`${data.along}1`, here);
      guide.setAttribute(`${data.along}2`, here);
      guide.setAttribute("visibility", "visible");
      const list = element("ul");
      const spoken = [];
      let place = "";
      for (const i of shownSeries()) {
        const { name, points } = data.series[i];
        if (!points.length) continue;
        const near = points.reduce((best, point) =>
          (Math.abs(point[0] - here) < Math.abs(best[0] - here) ? point : best));
        const distance = Math.abs(near[0] - here);
        if (distance > reach) continue;
        if (distance === 0) place = near[1];
        const colour = [...groups[i].classList].find((word) => /^k\d+$/.test(word));
        const words = `${name}: ${near[2]}` + (distance ? ` (at ${near[1]})` : "");
        list.append(element("li", { class: colour }, element("span", {}, words)));
        spoken.push(words);
      }
      const heading = data.label ? `${data.label}: ${place}` : place;
      values.replaceChildren(element("p", {}, heading), list);
      values.className = vertical ? `values right ${here < middle ? "low" : ""}` : `values ${here > middle ? "left" : "right"}`;
      values.hidden = false;
      scrub.setAttribute("aria-valuenow", String(at + 1));
      scrub.setAttribute("aria-valuetext", `${heading}. ${spoken.join("; ")}`);
      return undefined;
    };
    const point = (event) => {
      const seen = svg.getBoundingClientRect();
      const pointed = vertical
        ? ((event.clientY - seen.top) / seen.height) * box.height
        : ((event.clientX - seen.left) / seen.width) * box.width;
      let best = 0;
      places.forEach((place, i) => {
        if (Math.abs(place - pointed) < Math.abs(places[best] - pointed)) best = i;
      });
      show(best);
    };
    scrub.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "mouse") scrub.focus({ preventScroll: true }); // so that blur hides the values again
      point(event);
    });
    scrub.addEventListener("click", point); // a finger taps without moving
    scrub.addEventListener("pointercancel", hide); // it scrolls the page
    scrub.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") hide(); // what a finger has left is still to be read
    });
    scrub.addEventListener("blur", hide);
    scrub.addEventListener("keydown", (event) => {
      const page = Math.max(1, Math.round(places.length / 10));
      const [next, previous] = [at + 1, at < 0 ? places.length - 1 : at - 1];
      const [up, down] = vertical ? [previous, next] : [next, previous];
      const [pageUp, pageDown] = vertical ? [at - page, at + page] : [at + page, at - page];
      const moves = {
        ArrowRight: next, ArrowLeft: previous, ArrowUp: up, ArrowDown: down,
        Home: 0, End: places.length - 1, PageUp: pageUp, PageDown: pageDown,
      };
      if (event.key === "Escape") hide();
      else if (event.key in moves) {
        event.preventDefault();
        show(moves[event.key]);
      }
    });
    const keys = all(".key", plot.parentElement);
    const toggle = () => {
      const hidden = new Set();
      for (const key of keys) {
        if (key.getAttribute("aria-pressed") === "false") key.dataset.series.split(" ").forEach((i) => hidden.add(i));
      }
      for (const part of all("[data-series]", svg)) part.classList.toggle("off", hidden.has(part.dataset.series));
      hide();
      update();
    };
    for (const key of keys) {
      key.addEventListener("click", () => {
        key.setAttribute("aria-pressed", String(key.getAttribute("aria-pressed") === "false"));
        toggle();
      });
    }
    update();
  }

  // a question's charts are made readable when it is first unfolded
  const chartData = read("chart-data") || {};
  for (const fold of folds) {
    let done = false;
    const prepare = () => {
      if (done || !fold.open) return;
      done = true;
      for (const plot of all(".plot[data-chart]", fold)) readable(plot, chartData[plot.dataset.chart]);
    };
    fold.addEventListener("toggle", prepare);
    prepare();
  }

  // --- rank explorer ----------------------------------------------------------------------------------------------

  const explorer = read("explorer-data");
  if (explorer) explore(explorer);

  function explore(data) {
    const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const floats = (text) => {
      const view = new DataView(bytes(text).buffer);
      return Float32Array.from({ length: view.byteLength / 4 }, (_, i) => view.getFloat32(4 * i, true));
    };
    const maps = { value: bytes(data.maps.value), error: bytes(data.maps.error) };
    const form = find("#ex-form");
    const domain = find("#ex-domain");
    const slider = find("#ex-rank");
    const NAMES = ["features", "lambda", "samples"];
    const radios = Object.fromEntries(NAMES.map((name) => [name, all(`input[name="ex-${name}"]`, form)]));
    const state = {};
    let ranks = [];
    let problem = null;

    const short = (value, digits = 3) => {
      if (value === null || !Number.isFinite(value)) return "diverged";
      const size = Math.abs(value);
      const words = size >= 1e4 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(digits)));
      return words.replace("-", "−");
    };
    const counted = (value) => Number(value).toLocaleString("en");
    const seconds = (value) => {
      if (value >= 1) return `${short(value)} s`;
      return value >= 1e-3 ? `${short(1e3 * value)} ms` : `${short(1e6 * value)} µs`;
    };
    const size = (value) => (value >= 1e6 ? `${short(value / 1e6)} MB` : `${short(value / 1e3)} kB`);

    /** Of the problems of a domain the one with the features that are wanted, or the first. */
    const chooseProblem = (name, features) => {
      const some = data.problems.filter((one) => one.domain === name);
      return some.find((one) => one.features === features) || some[0] || data.problems[0];
    };
    const nearest = (values, wanted) => {
      const place = (value) => (value === "full" ? 1e9 : Number(value));
      return values.reduce((best, value) =>
        Math.abs(place(value) - place(wanted)) < Math.abs(place(best) - place(wanted)) ? value : best);
    };

    /** Make the controls fit the state, and the state what is stored. */
    function settle() {
      problem = chooseProblem(state.domain, state.features);
      state.domain = problem.domain;
      state.features = problem.features;
      const lambdas = problem.lambdas.filter((value) => problem.runs[value]);
      if (!lambdas.includes(state.lambda)) state.lambda = nearest(lambdas, state.lambda ?? "1");
      const samples = problem.samples.map(String);
      if (!samples.includes(state.samples)) state.samples = nearest(samples, state.samples ?? samples.at(-1));
      ranks = problem.ranks.filter((rank) => problem.runs[state.lambda][rank]);
      if (!ranks.includes(state.rank)) state.rank = nearest(ranks, state.rank ?? "50");
      domain.value = state.domain;
      const possible = {
        features: data.problems.filter((one) => one.domain === state.domain).map((one) => one.features),
        lambda: lambdas,
        samples,
      };
      for (const name of NAMES) {
        for (const radio of radios[name]) {
          radio.disabled = !possible[name].includes(radio.value);
          radio.checked = radio.value === state[name];
        }
      }
      slider.max = String(ranks.length - 1);
      slider.value = String(ranks.indexOf(state.rank));
    }

    const rankWords = (rank) => (rank === "full" ? "full: LSTD" : `rank ${rank}`);

    function paint(canvas, values, low, high, map) {
      const { n: columns } = problem.x;
      const { n: rows } = problem.y;
      canvas.width = columns;
      canvas.height = rows;
      const context = canvas.getContext("2d", { willReadFrequently: true }); // tiny: no need of graphics hardware
      const image = context.createImageData(columns, rows);
      let beyond = 0;
      values.forEach((value, i) => {
        const column = Math.floor(i / rows);
        const row = rows - 1 - (i % rows);
        const share = (value - low) / (high - low);
        beyond += !(share >= -1e-6 && share <= 1 + 1e-6); // the ends themselves are rounded
        const colour = 3 * clamp(Math.floor(256 * share), 0, 255);
        const pixel = 4 * (row * columns + column);
        for (let c = 0; c < 3; c += 1) image.data[pixel + c] = Number.isNaN(share) ? 128 : map[colour + c];
        image.data[pixel + 3] = 255;
      });
      context.putImageData(image, 0, 0);
      return beyond;
    }

    function colourBar(figure, low, high, map) {
      const canvas = find(".colours canvas", figure);
      const context = canvas.getContext("2d");
      const image = context.createImageData(256, 1);
      for (let i = 0; i < 256; i += 1) image.data.set([map[3 * i], map[3 * i + 1], map[3 * i + 2], 255], 4 * i);
      context.putImageData(image, 0, 0);
      find(".low", figure).textContent = short(low);
      find(".high", figure).textContent = (high === -low ? "+" : "") + short(high);
      for (const axis of ["x", "y"]) {
        const { label, low: from, high: to } = problem[axis];
        find(`.${axis}-label`, figure).textContent = label;
        find(`.${axis}-low`, figure).textContent = short(from);
        find(`.${axis}-high`, figure).textContent = short(to);
      }
    }

    function picture(id, title, values, low, high, map) {
      const canvas = find(`#ex-${id}`);
      const beyond = paint(canvas, values, low, high, map);
      colourBar(canvas.closest("figure"), low, high, map);
      const ends = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
      const range = `from ${short(ends[0])} to ${short(ends[1])}`;
      const words = beyond ? `${range}; ${counted(beyond)} of ${counted(values.length)} states beyond the colours` : range;
      canvas.setAttribute("aria-label", `${title}: ${words}`);
      find(".extent", canvas.closest("figure")).textContent = words;
    }

    // --- the two plots ---

    const BOX = { left: 62, right: 466, top: 10, bottom: 272, width: 480, height: 320 };
    const drawn = (tag, attributes, ...children) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      made.append(...children);
      return made;
    };
    const ticks = (low, high) => {
      const found = [];
      const decades = Math.log10(high / low);
      const steps = decades > 2.2 ? [1] : decades > 0.8 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7];
      const every = Math.max(1, Math.ceil(decades / 6));
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
        if (steps.length > 1 || power % every === 0) found.push(...steps.map((step) => step * 10 ** power));
      }
      return found.filter((value) => value >= low * 0.999 && value <= high * 1.001);
    };
    const raised = (power) => `10${[...String(power)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("")}`;
    const tickWords = (value) => (value >= 0.01 && value < 1e5 ? counted(value) : raised(Math.round(Math.log10(value))));

    /** Logarithmic axes; returns where things stand on them. */
    function logAxes(svg, xs, ys, xLabel, yLabel) {
      const place = ([low, high], from, to) => (v) => from + ((to - from) * Math.log(v / low)) / Math.log(high / low);
      const x = place(xs, BOX.left, BOX.right);
      const y = place(ys, BOX.bottom, BOX.top);
      svg.replaceChildren();
      for (const value of ticks(...xs)) {
        const at = x(value).toFixed(1);
        svg.append(drawn("line", { class: "grid", x1: at, x2: at, y1: BOX.top, y2: BOX.bottom }));
        svg.append(drawn("text", { class: "tick", x: at, y: BOX.bottom + 18, "text-anchor": "middle" }, tickWords(value)));
      }
      for (const value of ticks(...ys)) {
        const at = y(value).toFixed(1);
        svg.append(drawn("line", { class: "grid", x1: BOX.left, x2: BOX.right, y1: at, y2: at }));
        const words = drawn("text", { class: "tick", x: BOX.left - 8, y: Number(at) + 4.5, "text-anchor": "end" });
        words.append(tickWords(value));
        svg.append(words);
      }
      svg.append(drawn("path", { class: "frame", d: `M${BOX.left} ${BOX.top}V${BOX.bottom}H${BOX.right}` }));
      const middle = (BOX.left + BOX.right) / 2;
      svg.append(drawn("text", { class: "label", x: middle, y: BOX.height - 7, "text-anchor": "middle" }, xLabel));
      const turned = `translate(15 ${(BOX.top + BOX.bottom) / 2}) rotate(-90)`;
      svg.append(drawn("text", { class: "label", transform: turned, "text-anchor": "middle" }, yLabel));
      return { x, y };
    }
    const path = (points) => `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;

    function spectrum(sigma, full, inverted) {
      const svg = find("#ex-spectrum");
      const largest = full ? full[0] : sigma[0];
      const lowest = 1e-8;
      const highest = Math.max(...ranks.filter((rank) => rank !== "full").map(Number));
      const longest = Math.max(full ? full.length : 0, sigma.length, highest, 10);
      const { x, y } = logAxes(svg, [1, longest], [lowest, 2], "i", "σᵢ/σ₁");
      const line = (values) =>
        path([...values].map((v, i) => [i + 1, v / largest]).filter(([, v]) => v > lowest).map(([i, v]) => [x(i), y(v)]));
      if (full) svg.append(drawn("path", { class: "spectrum", d: line(full) }));
      if (sigma.length > 1) svg.append(drawn("path", { class: "kept", d: line(sigma) }));
      const level = y(data.cutoff).toFixed(1);
      svg.append(drawn("line", { class: "cut-off", x1: BOX.left, x2: BOX.right, y1: level, y2: level }));
      svg.append(drawn("text", { class: "note", x: BOX.left + 6, y: Number(level) + 15 }, `cut-off ${data.cutoff}`));
      if (state.rank !== "full") {
        const at = x(Number(state.rank)).toFixed(1);
        svg.append(drawn("line", { class: "cut", x1: at, x2: at, y1: BOX.top, y2: BOX.bottom, "data-rank": state.rank }));
        const left = Number(at) > BOX.width - 110;
        svg.append(drawn("text", {
          class: "note", x: Number(at) + (left ? -6 : 6), y: BOX.bottom - 8, "text-anchor": left ? "end" : "start",
        }, `rank ${state.rank}`));
      }
      const what = full ? "Singular values of LSTD’s matrix (grey) and of the model (orange)" : "Singular values of the model";
      svg.setAttribute("aria-label", `${what}; ${rankWords(state.rank)}, ${inverted} inverted, cut-off ${data.cutoff}.`);
    }

    function byRank(sample) {
      const svg = find("#ex-by-rank");
      const found = ranks.map((rank) => [rank, problem.runs[state.lambda][rank].rmse[sample]]);
      const finite = found.filter(([, value]) => value !== null);
      const numbered = finite.filter(([rank]) => rank !== "full").map(([rank, value]) => [Number(rank), value]);
      const errors = finite.map(([, value]) => value);
      if (!errors.length) {
        svg.replaceChildren();
        svg.setAttribute("aria-label", "RMSE against rank: all diverged.");
        return;
      }
      const xs = numbered.length ? [numbered[0][0] * 0.85, numbered.at(-1)[0] * 1.15] : [1, 10];
      const { x, y } = logAxes(svg, xs, [Math.min(...errors) * 0.8, Math.max(...errors) * 1.25], "rank r", "RMSE");
      const full = finite.find(([rank]) => rank === "full");
      if (full) {
        const at = y(full[1]).toFixed(1);
        svg.append(drawn("line", { class: "cut-off", x1: BOX.left, x2: BOX.right, y1: at, y2: at }));
        svg.append(drawn("text", { class: "note", x: BOX.left + 6, y: Number(at) + 15 }, `LSTD ${short(full[1])}`));
      }
      if (numbered.length) {
        svg.append(drawn("path", { class: "spectrum", d: path(numbered.map(([r, v]) => [x(r), y(v)])) }));
      }
      for (const [rank, value] of numbered) {
        const now = String(rank) === state.rank;
        svg.append(drawn("circle", { class: now ? "now" : "dot", cx: x(rank).toFixed(1), cy: y(value).toFixed(1), r: now ? 6 : 3 }));
      }
      const words = finite.map(([rank, value]) => `${rankWords(rank)} ${short(value)}`).join("; ");
      svg.setAttribute("aria-label", `RMSE against rank: ${words}.`);
    }

    // --- all of it ---

    const put = (name, words, value) => {
      const place = find(`#ex-${name}`);
      place.textContent = words;
      place.dataset.value = String(value);
    };
    let spoken = 0;

    function draw() {
      settle();
      const sample = problem.samples.map(String).indexOf(state.samples);
      const runs = problem.runs[state.lambda];
      const run = runs[state.rank];
      const truth = floats(problem.truth);
      const estimate = floats(run.value[sample]);
      const error = estimate.map((value, i) => value - truth[i]);
      const sigma = floats(run.sigma[sample]);
      const [low, high] = problem.range;
      picture("truth", "True values", truth, low, high, maps.value);
      picture("estimate", "Estimated values", estimate, low, high, maps.value);
      picture("error", "Error", error, -problem.error, problem.error, maps.error);
      const kept = state.rank === "full" ? sigma.length : Math.min(sigma.length, Number(state.rank));
      const inverted = sigma.filter((value, i) => i < kept && value > data.cutoff * sigma[0]).length;
      spectrum(sigma, runs.full ? floats(runs.full.sigma[sample]) : null, inverted);
      byRank(sample);
      const rmse = run.rmse[sample];
      put("rmse", short(rmse, 4), rmse);
      const whole = runs.full ? runs.full.rmse[sample] : null;
      const ratio = whole && rmse !== null ? rmse / whole : null;
      put("ratio", ratio === null ? "–" : short(ratio), ratio ?? "");
      const outOf = runs.full ? ` of ${counted(floats(runs.full.sigma[sample]).length)}` : "";
      put("inverted", `${counted(inverted)}${outOf}`, inverted);
      put("memory", size(run.nbytes[sample]), run.nbytes[sample]);
      put("learning", seconds(run.learning[sample]), run.learning[sample]);
      put("reading", seconds(run.reading[sample]), run.reading[sample]);
      find("#ex-rank-shown").textContent = rankWords(state.rank);
      slider.setAttribute("aria-valuetext", rankWords(state.rank));
      find("#ex-about").textContent =
        `${problem.about}. t-LSTD with the default buffer and cut-off ${data.cutoff}, one stream (seed ${data.seed}); ` +
        "CPU times are measured on the machine that made the runs, when samples come all at once.";
      clearTimeout(spoken);
      const words = `${state.domain}, ${state.features}, λ=${state.lambda}, ${counted(state.samples)} samples, ` +
        `${rankWords(state.rank)}: RMSE ${short(rmse, 4)}`;
      const say = () => { find("#ex-status").textContent = words; };
      if (spoken) spoken = setTimeout(say, 150); // not every step of a drag is spoken
      else {
        say();
        spoken = -1;
      }
    }

    const FIELDS = ["domain", "features", "lambda", "samples", "rank"];
    let sharing = 0;
    const share = () => {
      clearTimeout(sharing); // browsers refuse to note every step of a drag
      sharing = setTimeout(() => {
        const words = FIELDS.map((name) => encodeURIComponent(state[name])).join("/");
        history.replaceState(null, "", `#explore/${words}`);
      }, 100);
    };
    const restore = () => {
      const [first, ...words] = location.hash.slice(1).split("/");
      const found = words.map(decoded);
      if (first !== "explore" || words.length !== FIELDS.length || found.includes(null)) return false;
      clearTimeout(sharing);
      FIELDS.forEach((name, i) => { state[name] = found[i]; });
      return true;
    };
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", (event) => {
      if (event.target === slider) state.rank = ranks[Number(slider.value)];
      else if (event.target === domain) state.domain = domain.value;
      else state[event.target.name.slice(3)] = event.target.value;
      draw();
      share();
    });
    addEventListener("hashchange", () => { if (restore()) draw(); });
    const shared = restore();
    draw();
    if (shared) find("#explorer").scrollIntoView();
  }
})();
