// Folded chains: a run of states is one node until it is opened. Then its states take a column each,
// and what stands to the right of it makes room.

/** A drawing's chains; `chains` is {key: {nodes, edges, width}} from Python. */
function chainsOf(cy, chains, afterEach) {
  const open = new Set();
  const keyOf = new Map();
  for (const [key, { nodes, edges }] of Object.entries(chains))
    for (const element of [...nodes, ...edges]) keyOf.set(element.data.id, key);

  function unfold(key) {
    const folded = cy.getElementById(key);
    if (open.has(key) || folded.empty()) return;
    const { nodes, edges, width } = chains[key];
    const [first, last] = [nodes[0].data.id, nodes.at(-1).data.id];
    const place = { ...folded.position() };
    cy.batch(() => {
      const ways = folded.connectedEdges().map((edge) => edge.json());
      const self = { ...folded.json(), position: place };
      folded.remove();
      cy.nodes((node) => node.position("x") > place.x).shift({ x: width, y: 0 });
      cy.add(nodes.map((node, step) => ({ ...copy(node), position: along(place, width, step, nodes) })));
      cy.add(edges.map(copy));
      cy.add(ways.map((way) => withEnds(way, key, last, first)));
      chains[key].folded = self;
    });
    open.add(key);
  }

  function fold(key) {
    const { nodes, edges, width, folded } = chains[key];
    const [first, last] = [nodes[0].data.id, nodes.at(-1).data.id];
    cy.batch(() => {
      const states = cy.collection(nodes.map(({ data }) => cy.getElementById(data.id)[0]));
      const place = { ...cy.getElementById(first).position() };
      const inner = new Set(edges.map(({ data }) => data.id));
      const ways = states.connectedEdges((edge) => !inner.has(edge.id())).map((edge) => edge.json());
      const end = cy.getElementById(last).position("x");
      states.remove();
      cy.nodes((node) => node.position("x") > end).shift({ x: -width, y: 0 });
      cy.add({ ...copy(folded), position: place });
      cy.add(ways.map((way) => ({ data: { ...way.data, ...ends(way.data, last, first, key) } })));
    });
    open.delete(key);
  }

  const changed = (change) => (key) => {
    change(key);
    afterEach();
  };
  return {
    keys: Object.keys(chains),
    isOpen: (key) => open.has(key),
    numOpen: () => open.size,
    open: changed(unfold),
    fold: changed(fold),
    /** Open the chain that a state or a transition is in, if it is in one. */
    reveal: (id) => keyOf.has(id) && !open.has(keyOf.get(id)) && changed(unfold)(keyOf.get(id)),
    /** The key by which a state or a transition is drawn now. */
    drawnAs: (id) => (keyOf.has(id) && !open.has(keyOf.get(id)) ? keyOf.get(id) : id),
  };
}

function along(place, width, step, nodes) {
  return { x: place.x + (width * step) / (nodes.length - 1), y: place.y };
}

/** A way into or out of a folded chain, as that of its first or last state. */
function withEnds({ data }, key, last, first) {
  const source = data.source === key ? last : data.source;
  const target = data.target === key ? first : data.target;
  return { data: { ...data, source, target } };
}

function ends({ source, target }, last, first, key) {
  return { source: source === last ? key : source, target: target === first ? key : target };
}

function copy(element) {
  return { ...element, data: { ...element.data } };
}
