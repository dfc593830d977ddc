// A small picture of the whole drawing with a frame around what is in view. It can be clicked and
// dragged; the arrow keys and f do the same from the keyboard. A narrow window has no room for it.

const MINIMAP = { width: 168, height: 104, edge: 5, least: 420 };

function minimap(root, cy) {
  const canvas = root.querySelector(".minimap");
  const pen = canvas.getContext("2d");
  const scale = globalThis.devicePixelRatio || 1;
  canvas.width = MINIMAP.width * scale;
  canvas.height = MINIMAP.height * scale;
  let map = null;
  let waiting = false;

  function draw() {
    waiting = false;
    if (cy.destroyed() || !cy.nodes().length) return;
    const box = cy.nodes().boundingBox({ includeLabels: false });
    const view = cy.extent();
    const all = view.x1 <= box.x1 && view.y1 <= box.y1 && view.x2 >= box.x2 && view.y2 >= box.y2;
    canvas.hidden = all || cy.width() < MINIMAP.least;
    if (canvas.hidden) return;
    const room = { width: MINIMAP.width - 2 * MINIMAP.edge, height: MINIMAP.height - 2 * MINIMAP.edge };
    const zoom = Math.min(room.width / box.w, room.height / box.h);
    map = {
      zoom,
      left: (MINIMAP.width - zoom * box.w) / 2 - zoom * box.x1,
      top: (MINIMAP.height - zoom * box.h) / 2 - zoom * box.y1,
    };
    const at = (x, y) => [map.left + zoom * x, map.top + zoom * y];
    const [ink] = inks(root);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, MINIMAP.width, MINIMAP.height);
    cy.nodes().forEach((node) => {
      const [x, y] = at(node.position("x"), node.position("y"));
      const marked = node.hasClass("found") || node.hasClass("chosen");
      const size = marked ? 5 : Math.max(1.6, Math.min(zoom * node.data("height"), 5));
      pen.globalAlpha = marked || node.hasClass("path") ? 1 : 0.55;
      pen.fillStyle = marked ? ink : node.data("colour") || ink;
      pen.fillRect(x - size / 2, y - size / 2, size, size);
    });
    const [left, top] = at(view.x1, view.y1);
    pen.globalAlpha = 1;
    pen.strokeStyle = ink;
    pen.lineWidth = 1.5;
    pen.strokeRect(left, top, zoom * view.w, zoom * view.h);
  }

  function later() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(draw);
  }

  function move(event) {
    if (!map || !event.buttons) return;
    const { left, top } = canvas.getBoundingClientRect();
    const x = (event.clientX - left - map.left) / map.zoom;
    const y = (event.clientY - top - map.top) / map.zoom;
    cy.pan({ x: cy.width() / 2 - cy.zoom() * x, y: cy.height() / 2 - cy.zoom() * y });
  }

  canvas.onpointerdown = (event) => {
    canvas.setPointerCapture(event.pointerId);
    move(event);
  };
  canvas.onpointermove = move;
  cy.on("viewport resize", later);
  return later;
}
