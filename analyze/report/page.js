// SPDX-License-Identifier: MIT
// Draws the charts of a page from the JSON in #page-data: zoom, reading values, legend, table, theme.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('page-data').textContent);
  const root = document.documentElement;
  let palette = [];
  const css = (name) => getComputedStyle(root).getPropertyValue('--' + name).trim();
  const said = document.getElementById('said');
  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  // --- numbers: one unit for all values of an axis

  const BINARY = [[1, ''], [1024, 'Ki'], [1048576, 'Mi'], [1073741824, 'Gi'], [1099511627776, 'Ti']];
  const DECIMAL = [[1e-9, 'n'], [1e-6, 'µ'], [1e-3, 'm'], [1, ''], [1e3, 'k'], [1e6, 'M'], [1e9, 'G']];
  const TIMES = [[1e-9, 'ns'], [1e-6, 'µs'], [1e-3, 'ms'], [1, 's'], [60, 'min'], [3600, 'h']];
  // {factor, name}: a value divided by the factor is in `name`.
  function scaleOf(unit, most) {
    const steps = unit === 's' ? TIMES : unit.startsWith('B') ? BINARY : unit === '%' ? [[1, '']] : DECIMAL.slice(3);
    let found = steps[0];
    for (const step of steps) {
      const enough = unit === 's' && step[0] >= 60 ? 2 * step[0] : step[0];
      if (most >= enough) found = step;
    }
    if (unit === 's') return {factor: found[0], name: found[1]};
    return {factor: found[0], name: unit === 'count' ? (found[1] && '× ' + Math.round(found[0]).toLocaleString('en')) : found[1] + unit};
  }
  const digits = (value) => {
    const size = Math.abs(value);
    return value.toLocaleString('en', size >= 1000 ? {maximumFractionDigits: 0} : {maximumSignificantDigits: 3});
  };
  function text(value, unit) {
    if (value === null || value === undefined) return '–';
    const {factor, name} = scaleOf(unit, Math.abs(value));
    if (unit === 'count') return digits(value);
    if (unit === '%') return digits(value) + ' %';
    return digits(value / factor) + (name ? ' ' + name : '');
  }
  const greatest = (lists) => {
    let most = 0;
    for (const list of lists) for (const value of list) if (value !== null && Math.abs(value) > most) most = Math.abs(value);
    return most;
  };

  // --- one chart

  class Figure {
    constructor(given) {
      this.given = given;
      this.node = document.getElementById(given.id);
      this.overTime = given.kind === 'lines' || given.kind === 'areas' || given.kind === 'lanes';
      this.cursor = null;
      this.hidden = new Set();
      this.prepare();
      this.frame();
    }

    // Values in the units of the axes.
    prepare() {
      const given = this.given;
      if (given.kind === 'lanes') {
        this.count = given.lanes.length ? given.lanes[0].shares.length / Math.max(given.states.length, 1) : 0;
        this.step = this.count ? (given.end - given.begin) / this.count : 1;
        given.x = Array.from({length: this.count}, (_, i) => given.begin + (i + .5) * this.step);
        given.series = given.states.map((state, s) => ({name: state.name, color: state.color,
          values: given.x.map((_, i) => 100 * given.lanes.reduce((sum, lane) => sum + this.share(lane, i, s), 0) / given.lanes.length)}));
        given.unit = '%';
      }
      this.y = scaleOf(given.unit, greatest(given.series.map((one) => one.values)));
      this.x = this.overTime ? scaleOf(given.x_unit, given.x.length ? given.x[given.x.length - 1] : 0) : {factor: 1, name: ''};
      given.series.forEach((one, i) => { if (one.color < 0) one.color = i % 10; });
      if (this.overTime) {
        this.low = (given.kind === 'lanes' ? given.begin : given.x[0] ?? 0) / this.x.factor;
        this.high = (given.kind === 'lanes' ? given.end : given.x[given.x.length - 1] ?? 1) / this.x.factor;
      }
    }
    share(lane, interval, state) {
      return (lane.shares.charCodeAt(interval * this.given.states.length + state) - 48) / 63;
    }

    frame() {
      const {node, given} = this;
      node.tabIndex = 0;
      node.setAttribute('role', 'group');
      node.setAttribute('aria-roledescription', 'chart');
      node.setAttribute('aria-label', given.title);
      node.setAttribute('aria-describedby', given.id + '-note');
      this.plot = node.querySelector('.plot');
      const rows = given.kind === 'lanes' ? given.lanes.length : given.sideways ? given.labels.length : 0;
      if (rows) this.plot.style.height = Math.max(140, Math.min(1200, 60 + rows * (given.kind === 'lanes' ? 17 : 24 * Math.max(1, given.kind === 'bars' ? given.series.length * .7 : 1)))) + 'px';
      this.canvas = element('canvas', {role: 'img', 'aria-label': given.title + '. ' + this.summary()});
      this.plot.append(this.canvas);
      this.tip = element('div', {class: 'tip', hidden: ''});
      this.selection = element('div', {class: 'select', hidden: ''});
      this.plot.append(this.tip, this.selection);
      const tools = element('div', {class: 'tools'});
      this.legend = given.series.map((one, i) => {
        const button = element('button', {type: 'button', class: 'series', 'aria-pressed': 'true'},
          element('span', {class: 'swatch', style: `background:var(--c${one.color})`}), one.name);
        button.addEventListener('click', () => this.toggle(i, button));
        tools.append(button);
        return button;
      });
      if (this.overTime) {
        const zoom = element('span', {class: 'zoom'});
        for (const [label, name, act] of [['+', 'Zoom in', () => this.zoomBy(.5)], ['−', 'Zoom out', () => this.zoomBy(2)],
          ['Reset', 'Reset the zoom', () => this.reset()]]) {
          const button = element('button', {type: 'button', title: name, 'aria-label': name}, label);
          button.addEventListener('click', act);
          zoom.append(button);
        }
        tools.append(zoom);
      }
      node.append(tools);
      const details = element('details', {}, element('summary', {}, 'Table'));
      details.addEventListener('toggle', () => { if (details.open && !details.querySelector('table')) details.append(this.table()); });
      node.append(details);
      node.addEventListener('keydown', (event) => this.key(event));
      this.mouse();
    }

    summary() {
      const {given} = this;
      if (given.kind === 'lanes') return `${given.lanes.length} rows; of all together, ` + given.series.map((one) =>
        `${one.name} ${text(one.values.reduce((a, b) => a + b, 0) / Math.max(one.values.length, 1), '%')}`).join(', ');
      return given.series.map((one) => {
        const known = one.values.filter((value) => value !== null);
        if (!known.length) return `${one.name}: no values`;
        let least = known[0], most = known[0];
        for (const value of known) { least = Math.min(least, value); most = Math.max(most, value); }
        return `${one.name}: ${text(least, given.unit)} to ${text(most, given.unit)}`;
      }).join('; ');
    }

    table() {
      const {given} = this;
      const head = element('tr');
      const body = element('tbody');
      const put = (row, name, value, right) => row.append(element(name, right ? {class: 'right'} : {}, value));
      if (given.kind === 'lanes') {
        put(head, 'th', 'Row', false);
        given.states.forEach((state) => put(head, 'th', state.name, true));
        given.lanes.forEach((lane) => {
          const row = element('tr');
          put(row, 'td', lane.name, false);
          given.states.forEach((_, s) => {
            let sum = 0;
            for (let i = 0; i < this.count; ++i) sum += this.share(lane, i, s);
            put(row, 'td', text(100 * sum / Math.max(this.count, 1), '%'), true);
          });
          body.append(row);
        });
      } else {
        put(head, 'th', this.overTime ? (given.x_title || 'Time') : given.x_title || 'What', false);
        given.series.forEach((one) => put(head, 'th', one.name, true));
        const keys = this.overTime ? given.x.map((value) => text(value, given.x_unit)) : given.labels;
        keys.forEach((key, i) => {
          const row = element('tr');
          put(row, 'td', key, false);
          given.series.forEach((one) => put(row, 'td', text(one.values[i], given.unit), true));
          body.append(row);
        });
      }
      head.querySelectorAll('th').forEach((cell) => cell.setAttribute('scope', 'col'));
      return element('div', {class: 'data', tabindex: '0', role: 'region', 'aria-label': 'Table: ' + given.title},
        element('table', {}, element('thead', {}, head), body));
    }

    // --- drawing

    draw() {
      if (this.chart) return;
      const {given} = this;
      const bars = given.kind === 'bars' || given.kind === 'stacked bars';
      const sideways = bars && given.sideways;
      const scaled = (list) => list.map((value) => value === null ? null : value / this.y.factor);
      const datasets = given.kind === 'lanes' ? [{data: []}] : given.series.map((one) => ({
        label: one.name, borderColor: () => palette[one.color],
        backgroundColor: () => palette[one.color] + (given.kind === 'areas' ? 'b0' : ''), borderWidth: bars ? 0 : 1.5, borderDash: one.dashed ? [6, 4] : [], pointRadius: given.x.length === 1 ? 3 : 0, pointHitRadius: 6,
        fill: given.kind === 'areas' ? 'stack' : false, maxBarThickness: 46, spanGaps: false,
        data: bars ? scaled(one.values) : scaled(one.values).map((value, i) => ({x: given.x[i] / this.x.factor, y: value})),
      }));
      const value = {stacked: given.kind === 'areas' || given.kind === 'stacked bars', type: given.log ? 'logarithmic' : 'linear',
        beginAtZero: true, max: given.unit === '%' && greatest(given.series.map((one) => one.values)) > 50 ? 100 : undefined, title: {display: this.y.name !== '', text: this.y.name}, grid: {}, ticks: {}};
      if (given.kind === 'lanes') Object.assign(value, {type: 'linear', min: 0, max: given.lanes.length, reverse: true, title: {display: false},
        grid: {display: false}, ticks: {autoSkip: false, stepSize: 1, padding: 2, callback: () => ''}, afterFit: (axis) => { axis.width = this.labelWidth(); }});
      const names = {type: 'category', stacked: given.kind === 'stacked bars', grid: {display: false}, ticks: {autoSkip: !sideways},
        title: {display: Boolean(given.x_title), text: given.x_title}};
      if (sideways) names.ticks.callback = function (at) { const label = this.getLabelForValue(at); return label.length > 60 ? label.slice(0, 24) + '…' + label.slice(-34) : label; };
      const time = {type: 'linear', min: this.low, max: this.high, title: {display: true, text: (given.x_title || 'time') + (this.x.name ? ', ' + this.x.name : '')},
        grid: {}, ticks: {maxRotation: 0}};
      const scales = bars ? (sideways ? {x: value, y: names} : {x: names, y: value}) : {x: time, y: value};
      this.chart = new Chart(this.canvas, {
        type: given.kind === 'lanes' ? 'scatter' : bars ? 'bar' : 'line',
        data: {labels: bars ? given.labels : undefined, datasets},
        options: {responsive: true, maintainAspectRatio: false, animation: false, parsing: bars, normalized: true, indexAxis: sideways ? 'y' : 'x',
          events: [], scales, plugins: {legend: {display: false}, tooltip: {enabled: false}, decimation: {enabled: false}}},
        plugins: [{id: 'own', beforeDatasetsDraw: () => this.lanes(), afterDatasetsDraw: () => this.drawCursor()}],
      });
      this.recolor();
    }
    labelWidth() {
      const longest = Math.max(0, ...this.given.lanes.map((lane) => lane.name.length));
      return Math.min(240, 14 + longest * 6.2);
    }
    recolor() {
      if (!this.chart) return;
      const {chart} = this;
      for (const scale of Object.values(chart.options.scales)) {
        scale.grid.color = css('line');
        scale.grid.borderColor = css('soft');
        scale.ticks.color = css('soft');
        if (scale.title) scale.title.color = css('soft');
      }
      chart.update('none');
    }
    lanes() {
      const {given, chart} = this;
      if (given.kind !== 'lanes' || !chart) return;
      const {ctx, scales: {x, y}, chartArea: area} = chart;
      const colors = given.states.map((state) => palette[state.color]);
      ctx.save();
      ctx.beginPath();
      ctx.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
      ctx.clip();
      given.lanes.forEach((lane, row) => {
        const top = y.getPixelForValue(row) + 1, height = y.getPixelForValue(row + 1) - y.getPixelForValue(row) - 2;
        for (let i = 0; i < this.count; ++i) {
          const from = (given.begin + i * this.step) / this.x.factor, to = from + this.step / this.x.factor;
          if (to < x.min || from > x.max) continue;
          const left = x.getPixelForValue(from), width = x.getPixelForValue(to) - left + .35;
          let bottom = top + height;
          for (let s = 0; s < colors.length; ++s) {
            const part = this.hidden.has(s) ? 0 : this.share(lane, i, s) * height;
            if (part <= 0) continue;
            ctx.fillStyle = colors[s];
            ctx.fillRect(left, bottom - part, width, part);
            bottom -= part;
          }
        }
      });
      ctx.restore();
      ctx.save();
      ctx.fillStyle = css('ink');
      ctx.font = '11px system-ui, "Liberation Sans", sans-serif';
      ctx.textAlign = 'right';
      ctx.textBaseline = 'middle';
      const room = this.labelWidth() - 10;
      given.lanes.forEach((lane, row) => {
        const whole = lane.name;
        let shown = whole;
        while (shown.length > 4 && ctx.measureText(shown).width > room) shown = shown.slice(0, -2);
        ctx.fillText(shown === whole ? whole : shown.slice(0, -1) + '…', area.left - 6, y.getPixelForValue(row + .5));
      });
      ctx.restore();
    }
    drawCursor() {
      const {chart} = this;
      if (this.cursor === null || !chart || !this.overTime) return;
      const at = chart.scales.x.getPixelForValue(this.given.x[this.cursor] / this.x.factor);
      chart.ctx.save();
      chart.ctx.strokeStyle = css('cursor');
      chart.ctx.beginPath();
      chart.ctx.moveTo(at, chart.chartArea.top);
      chart.ctx.lineTo(at, chart.chartArea.bottom);
      chart.ctx.stroke();
      chart.ctx.restore();
    }

    // --- legend and zoom

    toggle(i, button) {
      this.draw();
      const shown = this.hidden.has(i);
      if (shown) this.hidden.delete(i); else this.hidden.add(i);
      button.setAttribute('aria-pressed', String(shown));
      if (this.given.kind !== 'lanes') this.chart.setDatasetVisibility(i, shown);
      this.chart.update('none');
    }
    together() {
      return this.given.zoom ? figures.filter((other) => other.given.zoom === this.given.zoom) : [this];
    }
    // In seconds (or what x is in), so that charts with other axes follow.
    zoomTo(from, to) {
      for (const figure of this.together()) {
        const {low, high} = figure, factor = figure.x.factor;
        let a = Math.max(low, from / factor), b = Math.min(high, to / factor);
        if (!(b - a > (high - low) * 1e-6)) [a, b] = [low, high];
        figure.view = [a, b];
        if (!figure.chart) continue;
        figure.chart.options.scales.x.min = a;
        figure.chart.options.scales.x.max = b;
        figure.chart.update('none');
      }
    }
    seen() {
      const [a, b] = this.view ?? [this.low, this.high];
      return [a * this.x.factor, b * this.x.factor];
    }
    zoomBy(factor, about) {
      const [a, b] = this.seen();
      const middle = about ?? (this.cursor !== null ? this.given.x[this.cursor] : (a + b) / 2);
      const within = Math.min(Math.max(middle, a), b);
      this.zoomTo(within - (within - a) * factor, within + (b - within) * factor);
    }
    pan(share) {
      const [a, b] = this.seen(), low = this.low * this.x.factor, high = this.high * this.x.factor;
      const by = Math.min(Math.max((b - a) * share, low - a), high - b);
      this.zoomTo(a + by, b + by);
    }
    reset() { this.zoomTo(-Infinity, Infinity); }

    // --- reading values

    length() { return this.overTime ? this.given.x.length : this.given.labels.length; }
    name(at) { return this.overTime ? text(this.given.x[at], this.given.x_unit) : this.given.labels[at]; }
    point(at, row) {
      this.cursor = at;
      const {given} = this;
      const lane = given.kind === 'lanes' && row !== undefined ? given.lanes[row] : undefined;
      const rows = given.series.map((one, i) => ({i, one, value: lane ? 100 * this.share(lane, at, i) : one.values[at]}))
        .filter(({i}) => !this.hidden.has(i));
      this.tip.replaceChildren(element('div', {}, (lane ? lane.name + ', ' : '') + this.name(at)),
        ...rows.map(({one, value}) => element('div', {}, element('span', {class: 'swatch', style: `background:var(--c${one.color})`}), one.name,
          element('b', {}, text(value, given.unit)))));
      this.tip.hidden = false;
      const chart = this.chart, sideways = given.sideways && !this.overTime;
      const along = this.overTime ? chart.scales.x.getPixelForValue(given.x[at] / this.x.factor)
        : sideways ? chart.chartArea.left + 80 : chart.scales.x.getPixelForValue(at);
      const width = this.tip.offsetWidth;
      this.tip.style.left = Math.max(0, along + 12 + width > this.plot.clientWidth ? along - 12 - width : along + 12) + 'px';
      this.tip.style.top = (sideways ? chart.scales.y.getPixelForValue(at) : chart.chartArea.top + 6) + 'px';
      chart.draw();
      return this.name(at) + ': ' + rows.map(({one, value}) => `${one.name} ${text(value, given.unit)}`).join(', ');
    }
    leave() {
      if (this.cursor === null) return;
      this.cursor = null;
      this.tip.hidden = true;
      if (this.chart) this.chart.draw();
    }
    nearest(pixel, vertical) {
      const {given, chart} = this;
      if (!this.overTime) {
        const scale = given.sideways ? chart.scales.y : chart.scales.x;
        return Math.min(Math.max(Math.round(scale.getValueForPixel(given.sideways ? vertical : pixel)), 0), given.labels.length - 1);
      }
      const wanted = chart.scales.x.getValueForPixel(pixel) * this.x.factor;
      let a = 0, b = given.x.length - 1;
      while (b - a > 1) { const m = (a + b) >> 1; if (given.x[m] <= wanted) a = m; else b = m; }
      return wanted - given.x[a] < given.x[b] - wanted ? a : b;
    }
    key(event) {
      if (event.target !== this.node || event.ctrlKey || event.metaKey || event.altKey) return;
      this.draw();
      const last = this.length() - 1, step = Math.max(1, Math.round(this.length() / 10));
      const to = {ArrowLeft: (this.cursor ?? 0) - 1, ArrowRight: (this.cursor ?? -1) + 1, PageUp: (this.cursor ?? 0) - step,
        PageDown: (this.cursor ?? 0) + step, Home: 0, End: last}[event.key];
      if (to !== undefined && !event.shiftKey && last >= 0) {
        said.textContent = this.point(Math.min(Math.max(to, 0), last));
      } else if (this.overTime && event.shiftKey && event.key === 'ArrowLeft') this.pan(-.25);
      else if (this.overTime && event.shiftKey && event.key === 'ArrowRight') this.pan(.25);
      else if (this.overTime && (event.key === '+' || event.key === '=')) this.zoomBy(.5);
      else if (this.overTime && event.key === '-') this.zoomBy(2);
      else if (this.overTime && event.key === '0') this.reset();
      else if (event.key === 'Escape') this.leave();
      else return;
      event.preventDefault();
    }
    mouse() {
      let from = null;
      const place = (event) => {
        const box = this.canvas.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
      };
      this.canvas.addEventListener('pointermove', (event) => {
        if (!this.chart || !this.length()) return;
        const [x, y] = place(event), area = this.chart.chartArea;
        if (from !== null) {
          const to = Math.min(Math.max(x, area.left), area.right);
          Object.assign(this.selection.style, {left: Math.min(from, to) + 'px', width: Math.abs(to - from) + 'px'});
          this.selection.hidden = false;
          return;
        }
        if (x < area.left || x > area.right || y < area.top || y > area.bottom) { this.leave(); return; }
        const row = this.given.kind === 'lanes' ? Math.floor(this.chart.scales.y.getValueForPixel(y)) : undefined;
        this.point(this.nearest(x, y), row !== undefined && row >= 0 && row < this.given.lanes.length ? row : undefined);
      });
      this.canvas.addEventListener('pointerleave', () => this.leave());
      this.canvas.addEventListener('pointerdown', (event) => {
        if (!this.overTime || event.button !== 0 || !this.chart) return;
        from = Math.min(Math.max(place(event)[0], this.chart.chartArea.left), this.chart.chartArea.right);
        try { this.canvas.setPointerCapture(event.pointerId); } catch { /* a made-up event has no pointer */ }
        this.leave();
      });
      this.canvas.addEventListener('pointerup', (event) => {
        if (from === null) return;
        const to = Math.min(Math.max(place(event)[0], this.chart.chartArea.left), this.chart.chartArea.right);
        const values = [from, to].sort((a, b) => a - b).map((pixel) => this.chart.scales.x.getValueForPixel(pixel) * this.x.factor);
        if (Math.abs(to - from) > 5) this.zoomTo(values[0], values[1]);
        from = null;
        this.selection.hidden = true;
      });
      this.canvas.addEventListener('dblclick', () => { if (this.overTime) this.reset(); });
    }
  }

  // --- theme: as the system, light, dark

  const THEMES = ['system', 'light', 'dark'];
  const button = document.getElementById('theme');
  const kept = {
    get() { try { return localStorage.getItem('reprise-theme'); } catch { return null; } },
    set(value) { try { localStorage.setItem('reprise-theme', value); } catch { /* a page from a file may not keep it */ } },
  };
  function setTheme(name) {
    if (name === 'system') root.removeAttribute('data-theme'); else root.dataset.theme = name;
    button.textContent = 'Theme: ' + (name === 'system' ? 'as the system' : name);
    recolor();
  }
  function recolor() {
    palette = Array.from({length: 10}, (_, i) => css('c' + i));
    figures.forEach((figure) => figure.recolor());
  }
  const figures = data.charts.map((given) => new Figure(given));
  let theme = THEMES.includes(kept.get()) ? kept.get() : 'system';
  setTheme(theme);
  button.addEventListener('click', () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    kept.set(theme);
    setTheme(theme);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolor);

  // Charts are drawn when they come near the screen.
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watch.unobserve(entry.target);
      figures.find((figure) => figure.node === entry.target).drawSeen();
    }
  }, {rootMargin: '400px'});
  Figure.prototype.drawSeen = function () {
    this.draw();
    if (this.view) this.zoomTo(...this.seen());
  };
  figures.forEach((figure) => watch.observe(figure.node));
  window.reprisePage = {figures, drawAll() { figures.forEach((figure) => figure.drawSeen()); }, ready: performance.now()};
})();
