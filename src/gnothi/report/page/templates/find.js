for (const form of document.querySelectorAll(".find")) {
  const list = document.getElementById(form.dataset.for), rest = list.querySelector(".rest");
  const items = [...list.querySelectorAll(".question")], texts = items.map(item => item.textContent.toLowerCase());
  const marks = items.map(item => (item.dataset.marks || "").split(" "));
  const [input, count] = [form.querySelector("input"), form.querySelector(".count")], [which, method] = form.querySelectorAll("select");
  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = mark => !which.value || (which.value === "differ" ? mark === "differ" : method.value ? mark === `${which.value}-${method.value}` : mark.startsWith(`${which.value}-`));
    let shown = 0;
    items.forEach((item, i) => {
      item.hidden = !(words.every(word => texts[i].includes(word)) && (!which.value || marks[i].some(wanted)));
      shown += !item.hidden;
    });
    if (rest && (words.length || which.value)) rest.open = true;
    count.textContent = shown === items.length ? "" : `${shown} of ${items.length}`;
  };
  for (const field of [input, which, method]) field.addEventListener("input", show);
}
