// A trajectory as a conversation. Text of a log is only ever set as textContent: it cannot become
// markup.

const SHOWN = Symbol.for("graphcredit.chat");

/** Streamlit calls this on the first run, on new data and on a change of theme.
 *  data: {messages: [{kind, speaker, row, parts, step?, advantage?, colour?, note?}], row,
 *  signature}; `row` is the step that is shown; a message that is a step has its index. */
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".chat");
  const shown = (root[SHOWN] ??= {});
  shown.go = (row) => setTriggerValue("step", row);
  if (shown.signature !== data.signature) {
    root.replaceChildren(...data.messages.map((message) => article(message, shown)));
    root.tabIndex = 0;
    root.setAttribute("role", "region");
    root.setAttribute("aria-label", "Conversation");
    for (const box of root.querySelectorAll(".fold")) foldIfLong(box);
  }
  if (shown.signature !== data.signature || shown.row !== data.row) {
    mark(root, data.row);
    shown.signature = data.signature;
    shown.row = data.row;
  }
}

function article(message, shown) {
  const whole = element("article", message.kind);
  whole.dataset.row = message.row;
  const head = element("header", "");
  head.append(element("strong", "speaker", message.speaker));
  if (message.step !== undefined) {
    whole.classList.add("step");
    const button = element("button", "go", `Step ${message.step}`);
    button.type = "button";
    button.addEventListener("click", () => shown.go(message.row));
    head.append(button);
  }
  if (message.advantage !== undefined) {
    head.append(element("span", "advantage", `advantage ${message.advantage}`));
    whole.style.setProperty("--credit", message.colour);
  }
  if (message.note) head.append(element("span", "note", `Note: ${message.note}`));
  // What the agent was told folds as a whole. A step's parts fold one by one: its action is the last.
  const isStep = message.step !== undefined;
  const body = element("div", isStep ? "body" : "body fold");
  body.append(...message.parts.map((part) => partOf(part, isStep)));
  if (!message.parts.length) body.append(element("div", "title", "(no text)"));
  whole.append(head, body);
  return whole;
}

function partOf(part, isFolded) {
  const whole = element("div", part.isCode ? "part code" : "part prose");
  if (part.title) whole.append(element("div", "title", part.title));
  whole.append(element("pre", isFolded ? "text fold" : "text", part.text));
  if (part.numLeft) {
    const rest = `${part.numLeft.toLocaleString("en")} more characters: go to this step to read them.`;
    whole.append(element("div", "title", rest));
  }
  return whole;
}

/** What is long shows its beginning until its button is pressed. */
function foldIfLong(box) {
  if (box.scrollHeight <= box.clientHeight + 4) return;
  const all = `Show all ${box.textContent.length.toLocaleString("en")} characters`;
  const button = element("button", "unfold", all);
  button.type = "button";
  button.setAttribute("aria-expanded", "false");
  button.addEventListener("click", () => {
    const isOpen = box.classList.toggle("open");
    button.setAttribute("aria-expanded", String(isOpen));
    button.textContent = isOpen ? "Show less" : all;
  });
  box.after(button);
}

/** Mark the step that is shown, and bring it into view with what was read before it. Tab stops at its
 *  buttons only: a long conversation would take a hundred stops, and keys lead to other steps. */
function mark(root, row) {
  for (const button of root.querySelectorAll("button")) {
    button.tabIndex = button.closest("article").dataset.row === String(row) ? 0 : -1;
  }
  for (const old of root.querySelectorAll("[aria-current]")) old.removeAttribute("aria-current");
  const current = root.querySelector(`article.step[data-row="${row}"]`);
  if (!current) return;
  current.setAttribute("aria-current", "step");
  const first = root.querySelector(`article[data-row="${row}"]`);
  const [top, end] = [first.offsetTop - 8, current.offsetTop + current.offsetHeight + 8];
  const latest = Math.min(end - root.clientHeight, current.offsetTop - 8);
  root.scrollTop = Math.max(top, latest);
}

function element(name, kind, text) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
}
