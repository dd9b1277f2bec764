// What is folded away is printed, too; questions only where the reader has opened them.
let unfolded = [];
addEventListener("beforeprint", () => {
  unfolded = [...document.querySelectorAll("details:not([open], .question)")].filter(item => !item.closest("figure"));
  for (const item of unfolded) item.open = true;
});
addEventListener("afterprint", () => {
  for (const item of unfolded) item.open = false;
  unfolded = [];
});
