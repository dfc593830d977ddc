// A task's state graph. Places, colours and sizes come from Python; this file draws them with
// Cytoscape and says what was clicked. Text of a log is only ever set as textContent or drawn on
// the canvas: it cannot become markup.

const DRAWN = Symbol.for("graphcredit.graph");
const LIBRARY_READY = "graphcredit-cytoscape";
const MARKS = "graphcredit-marks";
const MANY = 600;
const PADDING = 36;
const LARGEST_AT_FIRST = 1.3;
const LEAST_HEIGHT = 440;
const SETTLED_MS = 500;
const NOTHING = { words: "", keys: [], total: 0 };

/** Streamlit calls this on the first run, on new data and on a change of theme.
 *  data: {nodes, edges, legend, sights, signature}. What is marked comes by an event of its own, so that a
 *  click does not send the graph again: globalThis[MARKS] is {path: [ids], selected: id or
 *  null, found: see find.js}. */
export default function drawGraph(component) {
  const { data, parentElement, setTriggerValue } = component;
  if (!globalThis.cytoscape) {
    const again = () => drawGraph(component);
    globalThis.addEventListener(LIBRARY_READY, again, { once: true });
    return () => globalThis.removeEventListener(LIBRARY_READY, again);
  }
  const root = parentElement.querySelector(".graph");
  if (root[DRAWN]?.signature !== data.signature) {
    forget(root);
    const drawn = build(root, data);
    globalThis.addEventListener(MARKS, drawn.onMarks);
    root[DRAWN] = Object.assign(drawn, { signature: data.signature, inks: inks(root).join() });
  }
  const drawn = root[DRAWN];
  drawn.click = (id) => setTriggerValue("clicked", id);
  drawn.ask = (words) => setTriggerValue("find", words);
  // To style thousands of elements takes as long as to place them: only for another theme.
  if (drawn.inks !== inks(root).join()) {
    drawn.inks = inks(root).join();
    drawn.cy.style(styles(root));
  }
  drawn.onMarks();
  return () => forget(root);
}

function forget(root) {
  if (!root[DRAWN]) return;
  globalThis.removeEventListener(MARKS, root[DRAWN].onMarks);
  root[DRAWN].cy.destroy();
  root[DRAWN] = undefined;
}

function build(root, data) {
  const many = data.edges.length > MANY;
  const cy = globalThis.cytoscape({
    container: root.querySelector(".canvas"),
    style: styles(root),
    minZoom: 0.02,
    maxZoom: 4,
    autoungrabify: true,
    boxSelectionEnabled: false,
    hideEdgesOnViewport: many,
    pixelRatio: many ? 1 : "auto",
  });
  const shorten = () => cy.$("node[?box]").toggleClass("far", cy.zoom() * LETTERS < LEAST_LETTERS);
  cy.on("zoom", shorten);
  const showMap = minimap(root, cy);
  pointAtGoal(root, cy);
  let inView = null;
  /** The drawing has more or less room: fit it again, unless somebody has moved it. */
  const onRoom = () => {
    cy.resize();
    const now = { zoom: cy.zoom(), pan: cy.pan() };
    if (!inView || JSON.stringify(now) === JSON.stringify(inView)) inView = fitTo(cy, data, root);
  };
  const find = finder(root, cy, (words) => root[DRAWN].ask(words));
  let isWhole = false;
  let isNew = true;
  const onMarks = () => {
    if (!isWhole) return;
    const marks = globalThis[MARKS];
    mark(cy, marks);
    if (isNew && marks?.selected) bringIntoView(cy, cy.getElementById(marks.selected));
    isNew = false;
    find.take(marks?.found ?? NOTHING);
    showMap();
  };
  listen(root, cy, data.legend);
  showLegend(root, data.legend);
  const onWindow = () => {
    if (cy.destroyed()) return;
    fillHeight(root);
    onRoom();
  };
  onWindow();
  // The page above may still be on its way.
  setTimeout(onWindow, SETTLED_MS);
  delete root.dataset.picture;
  delete root.dataset.ready;
  const all = [...data.nodes, ...data.edges];
  addInSlices(cy, all, data.nodes.length, (there) => {
    if (there === data.nodes.length) {
      shorten();
      root.dataset.picture = "";
      markPaint("graphcredit-picture");
    }
    if (there < all.length) return;
    markPaint("graphcredit-whole");
    isWhole = true;
    onMarks();
    root.dataset.ready = String(data.nodes.length);
  });
  return { cy, find, onMarks };
}

/** Note in the browser's timeline when what is there now has been painted. */
function markPaint(name) {
  requestAnimationFrame(() => setTimeout(() => performance.mark(name)));
}

/** Answer to the pointer and to the keyboard. */
function listen(root, cy, legend) {
  // Cytoscape does not see that a page around it has scrolled or moved it.
  root.querySelector(".canvas").onpointerdown = () => cy.resize();
  const tip = root.querySelector(".tip");
  cy.on("tap", (event) => root[DRAWN].click(event.target === cy ? "" : event.target.id()));
  cy.on("mouseover", "node,edge", (event) => {
    tip.textContent = event.target.data("tip");
    tip.hidden = false;
  });
  cy.on("mouseout", "node,edge", () => (tip.hidden = true));
  root.querySelector(".fit").onclick = () => cy.animate({ fit: { padding: PADDING }, duration: 150 });
  root.querySelector(".png").onclick = () => savePicture(root, cy, legend);
  root.onkeydown = (event) => onKey(root, cy, event);
}

function onKey(root, cy, event) {
  const zoom = (factor) =>
    cy.zoom({
      level: cy.zoom() * factor,
      renderedPosition: { x: root.clientWidth / 2, y: root.clientHeight / 2 },
    });
  const keys = {
    f: () => cy.fit(undefined, PADDING),
    "+": () => zoom(1.25),
    "=": () => zoom(1.25),
    "-": () => zoom(0.8),
    ArrowLeft: () => cy.panBy({ x: 60, y: 0 }),
    ArrowRight: () => cy.panBy({ x: -60, y: 0 }),
    ArrowUp: () => cy.panBy({ x: 0, y: 60 }),
    ArrowDown: () => cy.panBy({ x: 0, y: -60 }),
    "/": () => root.querySelector(".find input").focus(),
    Enter: () => root[DRAWN].find.current() && root[DRAWN].click(root[DRAWN].find.current()),
    Escape: () => root[DRAWN].click(""),
  };
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
  if (event.target !== root) return;
  keys[event.key]();
  event.preventDefault();
}

/** Show what is selected and which trajectory is laid over the graph. */
function mark(cy, marks) {
  cy.batch(() => {
    cy.$(".path, .faded, .chosen").removeClass("path faded chosen");
    if (!marks) return;
    const path = cy.collection(marks.path.map((id) => cy.getElementById(id)[0]).filter(Boolean));
    if (path.length) {
      cy.elements().not(path).addClass("faded");
      path.addClass("path");
    }
    if (!marks.selected) return;
    cy.getElementById(marks.selected).removeClass("faded").addClass("chosen");
  });
}

/** A selection of the address may lie outside of what is shown first. */
function bringIntoView(cy, element) {
  const view = cy.extent();
  const { x1, x2, y1, y2 } = element.boundingBox({ includeLabels: false });
  if (x1 < view.x1 || x2 > view.x2 || y1 < view.y1 || y2 > view.y2) centre(cy, element, false);
}

/** In the app, reach down to the end of the window; a page of its own says how high the graph is. */
function fillHeight(root) {
  if (getComputedStyle(root).getPropertyValue("--graph-height").trim()) return;
  const top = root.getBoundingClientRect().top + (root.closest("[data-testid=stMain]")?.scrollTop ?? 0);
  root.style.height = `${Math.max(LEAST_HEIGHT, Math.round(globalThis.innerHeight - top - 20))}px`;
}
