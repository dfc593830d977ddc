/** The page of an exported graph: what stands in it is in the element `data`. */
const data = JSON.parse(document.getElementById("data").textContent);
const list = document.querySelector("select");
const text = document.querySelector("pre");
const marks = { path: data.path, selected: "", found: NOTHING };
const show = (changed) => {
  globalThis[MARKS] = Object.assign(marks, changed);
  globalThis.dispatchEvent(new Event(MARKS));
};
const choose = (id) => {
  list.value = id;
  text.textContent = id ? data.details[id].join("\n\n") : text.textContent;
  show({ selected: id });
};
const find = (words) => {
  const wanted = words.toLowerCase();
  const states = Object.keys(data.details).filter((key) => key.startsWith("n"));
  const keys = states.filter((key) => data.details[key][1].toLowerCase().includes(wanted));
  show({ found: words ? { words, keys, total: keys.length } : NOTHING });
};
list.append(new Option("choose a state or a transition", ""));
for (const [id, [title]] of Object.entries(data.details)) list.append(new Option(title, id));
list.onchange = () => choose(list.value);
drawGraph({ data, parentElement: document, setTriggerValue: (name, value) => (name === "find" ? find : choose)(value) });
choose("");
