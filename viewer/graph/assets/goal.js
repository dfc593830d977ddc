// A sign at the edge of the picture that points at the goal while it is out of sight.

const SIGN = 44;
/** Pixels of the goal that are enough to see it. */
const SEEN = 20;

function pointAtGoal(root, cy) {
  const sign = root.querySelector(".to-goal");
  let waiting = false;

  function place() {
    waiting = false;
    if (cy.destroyed()) return;
    const goal = cy.nodes("[kind='goal']");
    const { x, y } = goal.empty() ? { x: 0, y: 0 } : goal.renderedPosition();
    const [width, height] = [cy.width(), cy.height()];
    const [half, high] = goal.empty() ? [0, 0] : [goal.renderedWidth() / 2, goal.renderedHeight() / 2];
    const isSeen = x + half > SEEN && x - half < width - SEEN && y + high > SEEN && y - high < height - SEEN;
    sign.hidden = goal.empty() || isSeen;
    if (sign.hidden) return;
    const [dx, dy] = [x - width / 2, y - height / 2];
    const share = Math.min((width / 2 - SIGN) / Math.abs(dx), (height / 2 - SIGN / 2) / Math.abs(dy));
    sign.style.left = `${width / 2 + dx * share}px`;
    sign.style.top = `${height / 2 + dy * share}px`;
    sign.textContent = dx > 0 ? "GOAL ▶" : "◀ GOAL";
  }

  function later() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(place);
  }

  sign.onclick = () => centre(cy, cy.nodes("[kind='goal']"), false);
  cy.on("viewport resize add", later);
}
