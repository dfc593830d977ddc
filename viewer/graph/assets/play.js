// Play: a trajectory moves over the graph step by step, with its text beside it. Where motion is
// unwanted, it goes from state to state without one.

const PLAYED = Symbol.for("graphcredit.played");
const STEP_MS = 1500;
const MOVE_MS = 500;
const MARGIN = 60;

/** The bar of a trajectory. Its moments come from Python (play.py): {at, by, head, thought, seen}. */
function player(root, cy, { onMove, onRoom }) {
  const part = (name) => root.querySelector(`.play .${name}`);
  const told = root.querySelector(".told");
  const token = root.querySelector(".token");
  const [bar, button, slider, said, close] = [root.querySelector(".play"), ...["go", "slider", "said", "end"].map(part)];
  let { name, moments, at } = { name: "", moments: [], at: -1 };
  let timer = null;

  function load(given) {
    const kept = root[PLAYED];
    const isSame = JSON.stringify(given.moments) === JSON.stringify(moments);
    if (isSame && given.name === name) return show();
    stop();
    ({ name, moments } = given);
    const isShort = moments.length < 2;
    if (bar.hidden !== isShort) {
      bar.hidden = isShort;
      onRoom();
    }
    slider.max = String(moments.length - 1);
    at = kept?.name === name && name ? Math.min(kept.at, moments.length - 1) : -1;
    show();
  }

  function show() {
    root[PLAYED] = { name, at };
    const now = moments[at];
    const isOn = Boolean(now);
    if (told.hidden === isOn) {
      told.hidden = close.hidden = !isOn;
      cy.resize();
    }
    slider.value = String(Math.max(at, 0));
    const words = isOn ? `${at} of ${moments.length - 1} steps` : `${moments.length - 1} steps`;
    said.textContent = slider.ariaValueText = words;
    button.textContent = timer === null ? "▶ Play" : "❚❚ Pause";
    cy.batch(() => {
      cy.$(".here, .went").removeClass("here went");
      if (!isOn) return;
      cy.getElementById(now.at).addClass("here");
      if (now.by) cy.getElementById(now.by).addClass("went");
    });
    if (!isOn) return place(false);
    const thought = now.thought ? [element("h4", "", "Thought"), element("p", "", now.thought)] : [];
    told.replaceChildren(
      element("h3", "", now.head),
      ...thought,
      element("h4", "", at ? "What the agent saw then" : "What the agent saw"),
      element("p", "", now.seen),
    );
    told.scrollTop = 0;
  }

  function place(moves) {
    const node = moments[at] ? cy.getElementById(moments[at].at) : cy.collection();
    token.hidden = node.empty();
    if (token.hidden) return;
    const { x } = node.renderedPosition();
    const y = node.renderedPosition("y") - node.renderedHeight() / 2;
    token.style.transition = moves && !calm() ? `translate ${MOVE_MS}ms` : "none";
    token.style.translate = `${x}px ${y}px`;
  }

  function go(to) {
    const isFirst = at < 0;
    at = Math.max(0, Math.min(to, moments.length - 1));
    show();
    const node = cy.getElementById(moments[at].at);
    if (node.nonempty() && (isFirst || !isInView(cy, node))) centre(cy, node, isFirst);
    place(true);
    onMove();
  }

  function stop() {
    clearInterval(timer);
    timer = null;
  }

  function next() {
    if (cy.destroyed() || at >= moments.length - 1) stop();
    else go(at + 1);
    if (at >= moments.length - 1) stop();
    if (!cy.destroyed()) show();
  }

  button.onclick = () => {
    if (timer !== null) stop();
    else {
      timer = setInterval(next, STEP_MS);
      go(at >= moments.length - 1 ? 0 : at + 1);
    }
    show();
  };
  slider.oninput = () => {
    stop();
    go(Number(slider.value));
  };
  close.onclick = () => {
    stop();
    at = -1;
    show();
    onMove();
    button.focus();
  };
  cy.on("viewport resize", () => place(false));
  return { load, show: () => (show(), place(false)), stop };
}

function isInView(cy, node) {
  const { x, y } = node.renderedPosition();
  return x > MARGIN && y > MARGIN && x < cy.width() - MARGIN && y < cy.height() - MARGIN;
}
