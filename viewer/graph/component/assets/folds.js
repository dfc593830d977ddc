// Folds: a chain or a room is one node until it is opened. Then its states take a column for each
// step from there, and what stands to the right of it makes room.

/** A drawing's folds; `folds` is {key: {kind, at, nodes, edges, width}} from Python. */
function foldsOf(cy, folds, afterEach) {
  const open = new Set();
  const keyOf = new Map();
  for (const [key, { nodes, edges }] of Object.entries(folds))
    for (const element of [...nodes, ...edges]) keyOf.set(element.data.id, key);

  function unfold(key) {
    const closed = cy.getElementById(key);
    if (open.has(key) || closed.empty()) return;
    const { at, nodes, edges, width } = folds[key];
    const place = { ...closed.position() };
    cy.batch(() => {
      const ways = closed.connectedEdges().map((edge) => edge.json());
      folds[key].closed = { ...closed.json(), position: place };
      closed.remove();
      cy.nodes((node) => node.position("x") > place.x).shift({ x: width, y: 0 });
      cy.add(nodes.map((node) => ({ ...copy(node), position: moved(node.position, at, place) })));
      cy.add(edges.map(copy));
      cy.add(ways.map(({ data }) => ({ data: { ...data, source: data.from, target: data.to } })));
    });
    open.add(key);
  }

  function fold(key) {
    const { at, nodes, edges, width, closed } = folds[key];
    const [inside, own] = [nodes, edges].map((all) => new Set(all.map(({ data }) => data.id)));
    const end = (id) => (inside.has(id) ? key : id);
    cy.batch(() => {
      const states = cy.collection(nodes.map(({ data }) => cy.getElementById(data.id)[0]));
      const place = moved(at, nodes[0].position, cy.getElementById(nodes[0].data.id).position());
      const ways = states.connectedEdges((edge) => !own.has(edge.id())).map((edge) => edge.json());
      states.remove();
      cy.nodes((node) => node.position("x") > place.x + width).shift({ x: -width, y: 0 });
      cy.add({ ...copy(closed), position: place });
      cy.add(ways.map(({ data }) => ({ data: { ...data, source: end(data.from), target: end(data.to) } })));
    });
    open.delete(key);
  }

  const changed = (change) => (key) => {
    change(key);
    afterEach();
  };
  return {
    keys: Object.keys(folds),
    kindOf: (key) => folds[key].kind,
    isOpen: (key) => open.has(key),
    numOpen: () => open.size,
    open: changed(unfold),
    fold: changed(fold),
    /** Open the fold that a state or a transition is in, if it is in one. */
    reveal: (id) => keyOf.has(id) && !open.has(keyOf.get(id)) && changed(unfold)(keyOf.get(id)),
    /** The key by which a state or a transition is drawn now. */
    drawnAs: (id) => (keyOf.has(id) && !open.has(keyOf.get(id)) ? keyOf.get(id) : id),
  };
}

/** Where a point comes to stand if another one comes to stand somewhere. */
function moved(point, from, to) {
  return { x: point.x - from.x + to.x, y: point.y - from.y + to.y };
}

function copy(element) {
  return { ...element, data: { ...element.data } };
}
