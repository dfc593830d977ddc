// A trajectory as a conversation. Text of a log is only ever set as textContent: it cannot become
// markup.

const SHOWN = Symbol.for("graphcredit.chat");
const HITS = "graphcredit-hits";

/** Streamlit calls this on the first run, on new data and on a change of theme.
 *  data: {messages: [{kind, speaker, row, parts, step?, advantage?, colour?}], row,
 *  wanted, signature}; `wanted` are words that are marked at first; `row` is the step that is shown; a message that is a step has its index. */
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".chat");
  const shown = (root[SHOWN] ??= {});
  shown.go = (row) => setTriggerValue("step", row);
  if (shown.wanted === undefined) shown.wanted = data.wanted;
  if (shown.signature !== data.signature) {
    root.replaceChildren(...data.messages.map((message) => article(message, shown)));
    parentElement.querySelector(".tools").replaceChildren(outline(data, shown), ...search(root, shown));
    root.tabIndex = 0;
    root.setAttribute("role", "region");
    root.setAttribute("aria-label", "Conversation");
    for (const box of root.querySelectorAll(".fold")) foldIfLong(box);
    shown.find();
  }
  if (shown.signature !== data.signature || shown.row !== data.row) {
    mark(root, data.row);
    markOutline(parentElement, data.row);
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
  if (message.isError) {
    whole.classList.add("error");
    head.append(element("strong", "failed", "error"));
  }
  const isRepeat = message.sameAs !== undefined;
  if (isRepeat) head.append(element("span", "repeat", `the same as before step ${message.sameAs}`));
  // What the agent was told folds as a whole. A step's parts fold one by one: its action is the last.
  const isStep = message.step !== undefined;
  const body = element("div", isStep ? "body" : isRepeat ? "body fold same" : "body fold");
  body.append(...message.parts.map((part) => partOf(part, isStep)));
  if (!message.parts.length) body.append(element("div", "title", "(no text)"));
  whole.append(head, body);
  return whole;
}

function partOf(part, isFolded) {
  const whole = element("div", part.isCode ? "part code" : "part prose");
  if (part.title) whole.append(element("div", "title", part.title));
  const text = element("pre", "text");
  if (isFolded) text.classList.add("fold");
  text.textContent = part.text;
  whole.append(text);
  if (part.numLeft) {
    const rest = `${part.numLeft.toLocaleString("en")} more characters: go to this step to read them.`;
    whole.append(element("div", "title cut", rest));
  }
  return whole;
}

/** All steps with their credit, a click away. */
function outline(data, shown) {
  const whole = element("details", "outline");
  const steps = data.messages.filter((message) => message.step !== undefined);
  whole.append(element("summary", "", `Outline: ${steps.length.toLocaleString("en")} steps`));
  const list = element("div", "list");
  for (const step of steps) {
    const button = element("button", "line");
    button.type = "button";
    button.dataset.row = step.row;
    const bar = element("i", "");
    bar.style.setProperty("--share", step.share ?? 0);
    bar.style.setProperty("--credit", step.colour ?? "transparent");
    const said = step.advantage === undefined ? "" : step.advantage;
    button.append(element("span", "index", step.step), element("span", "advantage", said), bar);
    button.append(element("span", "about", step.about));
    button.addEventListener("click", () => shown.go(step.row));
    list.append(button);
  }
  whole.append(list);
  whole.open = shown.isOutlineOpen ?? false;
  whole.addEventListener("toggle", () => (shown.isOutlineOpen = whole.open));
  return whole;
}

function markOutline(parent, row) {
  for (const line of parent.querySelectorAll(".outline .line")) {
    line.toggleAttribute("aria-current", line.dataset.row === String(row));
  }
}

/** A box whose words are marked in the conversation; Enter leads to the next place. */
function search(root, shown) {
  const box = element("input", "search");
  box.type = "search";
  box.placeholder = "Search in this rollout";
  box.setAttribute("aria-label", box.placeholder);
  box.value = shown.wanted;
  const count = element("span", "count");
  count.setAttribute("role", "status");
  let [ranges, place] = [[], -1];
  const say = () => {
    const isCut = root.querySelector(".cut") ? "; texts of other steps are cut" : "";
    const at = place < 0 ? "" : `${place + 1} of `;
    count.textContent = box.value ? `${at}${ranges.length.toLocaleString("en")} places${isCut}` : "";
  };
  shown.find = () => {
    shown.wanted = box.value;
    [ranges, place] = [rangesOf(root, box.value.toLowerCase()), -1];
    globalThis.CSS.highlights?.set(HITS, new Highlight(...ranges));
    say();
  };
  box.addEventListener("input", shown.find);
  // Keys of the page, such as those to the next step, are letters here.
  box.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key !== "Enter" || !ranges.length) return;
    const way = event.shiftKey ? -1 : 1;
    place = (Math.max(place, way < 0 ? 0 : -1) + way + ranges.length) % ranges.length;
    show(ranges[place], root);
    say();
  });
  return [box, count];
}

function rangesOf(root, wanted) {
  const ranges = [];
  if (!wanted) return ranges;
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    if (!text.parentElement.closest(".text")) continue;
    const small = text.data.toLowerCase();
    // A letter may be longer in lower case: then places are not those of the text.
    if (small.length !== text.data.length) continue;
    for (let at = small.indexOf(wanted); at >= 0; at = small.indexOf(wanted, at + wanted.length)) {
      const range = new Range();
      range.setStart(text, at);
      range.setEnd(text, at + wanted.length);
      ranges.push(range);
    }
  }
  return ranges;
}

/** Unfold what hides a place, and bring it into view. */
function show(range, root) {
  const start = range.startContainer.parentElement;
  for (let box = start.closest(".fold"); box; box = box.parentElement.closest(".fold")) {
    if (!box.classList.contains("open")) box.nextElementSibling?.matches(".unfold") && box.nextElementSibling.click();
  }
  root.scrollTop += range.getBoundingClientRect().top - root.getBoundingClientRect().top - root.clientHeight / 3;
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
