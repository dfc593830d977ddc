// A task's state graph. Places, colours and sizes come from Python; this file draws them with
// Cytoscape and says what was clicked. Text of a log is only ever set as textContent or drawn on
// the canvas: it cannot become markup.

const DRAWN = Symbol.for("graphcredit.graph");
const LIBRARY_READY = "graphcredit-cytoscape";
const MARKS = "graphcredit-marks";

/** Streamlit calls this on the first run, on new data and on a change of theme.
 *  data: {nodes, edges, legend, signature}. What is marked comes by an event of its own, so that a
 *  click does not send the graph again: globalThis[MARKS] is {path: [ids], selected: id or null}. */
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
    const cy = build(root, data);
    const onMarks = () => mark(cy, globalThis[MARKS]);
    globalThis.addEventListener(MARKS, onMarks);
    root[DRAWN] = { cy, onMarks, signature: data.signature, inks: inks(root).join() };
  }
  const drawn = root[DRAWN];
  drawn.click = (id) => setTriggerValue("clicked", id);
  // To style thousands of elements takes as long as to place them: only for another theme.
  if (drawn.inks !== inks(root).join()) {
    drawn.inks = inks(root).join();
    drawn.cy.style(styles(root));
  }
  drawn.onMarks();
  showLegend(root, data.legend);
  return () => forget(root);
}

function forget(root) {
  if (!root[DRAWN]) return;
  globalThis.removeEventListener(MARKS, root[DRAWN].onMarks);
  root[DRAWN].cy.destroy();
  root[DRAWN] = undefined;
}

function build(root, data) {
  const many = data.edges.length > 1500;
  const cy = globalThis.cytoscape({
    container: root.querySelector(".canvas"),
    elements: { nodes: data.nodes, edges: data.edges },
    layout: { name: "preset", fit: true, padding: 36 },
    style: styles(root),
    minZoom: 0.02,
    maxZoom: 4,
    autoungrabify: true,
    boxSelectionEnabled: false,
    hideEdgesOnViewport: many,
    pixelRatio: many ? 1 : "auto",
  });
  if (cy.zoom() > 1.3) cy.zoom(1.3) && cy.center();
  const tip = root.querySelector(".tip");
  cy.on("tap", (event) => root[DRAWN].click(event.target === cy ? "" : event.target.id()));
  cy.on("mouseover", "node,edge", (event) => {
    tip.textContent = event.target.data("tip");
    tip.hidden = false;
  });
  cy.on("mouseout", "node,edge", () => (tip.hidden = true));
  root.querySelector(".fit").onclick = () => cy.animate({ fit: { padding: 36 }, duration: 150 });
  root.querySelector(".png").onclick = () => savePicture(root, cy);
  root.onkeydown = (event) => onKey(root, cy, event);
  root.dataset.ready = String(data.nodes.length);
  return cy;
}

function onKey(root, cy, event) {
  const zoom = (factor) =>
    cy.zoom({
      level: cy.zoom() * factor,
      renderedPosition: { x: root.clientWidth / 2, y: root.clientHeight / 2 },
    });
  const keys = {
    f: () => cy.fit(undefined, 36),
    "+": () => zoom(1.25),
    "=": () => zoom(1.25),
    "-": () => zoom(0.8),
    ArrowLeft: () => cy.panBy({ x: 60, y: 0 }),
    ArrowRight: () => cy.panBy({ x: -60, y: 0 }),
    ArrowUp: () => cy.panBy({ x: 0, y: 60 }),
    ArrowDown: () => cy.panBy({ x: 0, y: -60 }),
    Escape: () => root[DRAWN].click(""),
  };
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
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
    if (marks.selected) cy.getElementById(marks.selected).removeClass("faded").addClass("chosen");
  });
}

/** The theme's colours of text and of ground. */
function inks(root) {
  const theme = getComputedStyle(root);
  const colour = (name, otherwise) => theme.getPropertyValue(name).trim() || otherwise;
  return [colour("--st-text-color", "#212529"), colour("--st-background-color", "#ffffff")];
}

function styles(root) {
  const [ink, paper] = inks(root);
  const text = { color: ink, "text-outline-color": paper, "text-outline-width": 2 };
  return [
    {
      selector: "node",
      style: {
        ...text,
        label: "data(label)",
        width: "data(width)",
        height: "data(height)",
        "font-size": 14,
        "min-zoomed-font-size": 6,
        "text-valign": "bottom",
        "text-margin-y": 3,
        "background-color": paper,
        "border-width": 1.5,
        "border-color": ink,
        "border-opacity": 0.55,
      },
    },
    { selector: "node[colour]", style: { "background-color": "data(colour)" } },
    {
      selector: "node[?box]",
      style: {
        shape: "round-rectangle",
        "text-valign": "center",
        "text-margin-y": 0,
        "text-wrap": "wrap",
        "text-outline-width": 0,
        "font-size": 16,
        "line-height": 1.15,
      },
    },
    { selector: "node[?box][ink]", style: { color: "data(ink)" } },
    { selector: "node[kind='start']", style: { shape: "round-rectangle", "border-width": 3 } },
    {
      selector: "node[kind='goal'][!box]",
      style: { shape: "star", width: 40, height: 40, "border-width": 2 },
    },
    { selector: "node[kind='goal'][?box]", style: { "border-style": "double", "border-width": 6 } },
    { selector: "node[kind='dead end']", style: { "border-style": "dashed", "border-opacity": 1 } },
    { selector: "node[kind='dead end'][!box]", style: { shape: "diamond" } },
    {
      selector: "edge",
      style: {
        width: "data(width)",
        "line-color": "data(colour)",
        "target-arrow-color": "data(colour)",
        "target-arrow-shape": "triangle",
        "curve-style": "straight",
      },
    },
    {
      selector: "edge[label != '']",
      style: {
        color: ink,
        label: "data(label)",
        "font-size": 12,
        "min-zoomed-font-size": 6,
        "text-margin-x": "data(dx)",
        "text-margin-y": "data(dy)",
        "text-background-color": paper,
        "text-background-opacity": 0.8,
        "text-background-padding": 1,
      },
    },
    {
      selector: "edge[bend != 0]",
      style: { "curve-style": "unbundled-bezier", "control-point-distances": "data(bend)" },
    },
    {
      selector: "edge:loop",
      style: { "curve-style": "bezier", "loop-direction": "0deg", "control-point-step-size": 40, "arrow-scale": 0.6 },
    },
    // Blame is told by a bar across its tip too, not by colour alone.
    { selector: "edge[?blamed]", style: { "target-arrow-shape": "triangle-tee" } },
    { selector: "edge[?pruned]", style: { "line-style": "dashed" } },
    {
      selector: "edge[?flipped]",
      style: { "underlay-color": "#c9a400", "underlay-opacity": 0.45, "underlay-padding": 4 },
    },
    {
      selector: "edge[?conflict]",
      style: { "underlay-color": "#b3261e", "underlay-opacity": 0.3, "underlay-padding": 3 },
    },
    { selector: "edge.faded", style: { opacity: 0.22 } },
    {
      selector: "node.faded",
      style: { "background-opacity": 0.25, "border-opacity": 0.3, color: ink, "text-opacity": 0.7 },
    },
    { selector: "edge.faded[?flipped]", style: { "underlay-opacity": 0.1 } },
    { selector: "edge.path", style: { "z-index": 2 } },
    { selector: "node.path", style: { "border-color": ink, "border-opacity": 1, "border-width": 3 } },
    {
      selector: ".chosen",
      style: { "overlay-color": ink, "overlay-opacity": 0.28, "overlay-padding": 6, "z-index": 3 },
    },
  ];
}

function showLegend(root, legend) {
  const scale = (title, colours, ends) => {
    const row = element("div", "scale");
    const bar = element("span", "bar");
    bar.style.background = `linear-gradient(to right, ${colours.join(",")})`;
    row.append(title, element("i", "", ends[0]), bar, element("i", "", ends[1]));
    return row;
  };
  const notes = [
    ...["goal: double border or ☆", "start: thick border", "dashed border or ◇: no way to the goal seen"],
    ...["width: visits", "dashed: pruned", "bar at the tip: below 0"],
    ...legend.marks,
  ];
  root
    .querySelector(".legend")
    .replaceChildren(
      scale(`edge: ${legend.advantage} `, legend.edge_scale, legend.edge_ends),
      scale(`state: ${legend.state} `, legend.state_scale, legend.state_ends),
      element("div", "", notes.join("  ·  ")),
    );
}

function savePicture(root, cy) {
  const paper = getComputedStyle(root).getPropertyValue("--st-background-color").trim();
  const link = document.createElement("a");
  link.href = cy.png({ full: true, scale: 2, maxWidth: 8000, maxHeight: 8000, bg: paper || "#fff" });
  link.download = "graph.png";
  link.click();
}

function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}
