// Iterations of a task on a slider: states keep their places, colours and widths change, and what an
// iteration lacks is faint.

const FRAME_MS = 1200;

/** The bar of iterations; `frames` is a list of {words, first, data: {id: changes}} from Python. */
function filmstrip(root, cy, data) {
  const frames = data.frames ?? [];
  const bar = root.querySelector(".frames");
  const [button, slider, said] = ["go", "slider", "said"].map((name) => bar.querySelector(`.${name}`));
  const folded = Object.values(data.folds).flatMap(({ nodes, edges }) => [...nodes, ...edges]);
  const wholes = Object.entries(data.folds);
  let at = Math.max(frames.findIndex((frame) => frame.first), 0);
  let timer = null;
  bar.hidden = frames.length < 2;
  slider.max = String(Math.max(frames.length - 1, 0));

  function change(given, changes) {
    for (const [name, value] of Object.entries(changes))
      if (value === null) delete given[name];
      else given[name] = value;
  }

  function show() {
    if (!frames.length || cy.destroyed()) return;
    const now = frames[at].data;
    slider.value = String(at);
    said.textContent = slider.ariaValueText = frames[at].words;
    button.textContent = timer === null ? "▶ Play" : "❚❚ Pause";
    // What is within a closed fold, or stands for an open one, shall be right when it comes.
    for (const { data: kept } of folded) change(kept, now[kept.id] ?? {});
    for (const [key, { closed: kept }] of wholes) if (kept) change(kept.data, now[key] ?? {});
    cy.batch(() =>
      cy.elements().forEach((each) => {
        const changes = now[each.id()];
        each.toggleClass("absent", !changes);
        for (const [name, value] of Object.entries(changes ?? {}))
          if (value === null) each.removeData(name);
          else if (each.data(name) !== value) each.data(name, value);
      }),
    );
  }

  function stop() {
    clearInterval(timer);
    timer = null;
  }

  function next() {
    if (cy.destroyed()) return stop();
    at = Math.min(at + 1, frames.length - 1);
    if (at === frames.length - 1) stop();
    show();
  }

  button.onclick = () => {
    if (timer !== null) stop();
    else {
      if (at === frames.length - 1) at = 0;
      timer = setInterval(next, FRAME_MS);
    }
    show();
  };
  slider.oninput = () => {
    stop();
    at = Number(slider.value);
    show();
  };
  return { show, stop };
}
