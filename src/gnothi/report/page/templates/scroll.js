// A table that is wider than its place says so.
const watched = new ResizeObserver(entries => {
  for (const { target } of entries) target.nextElementSibling.hidden = target.scrollWidth <= target.clientWidth + 1;
});
for (const wide of document.querySelectorAll(".wide")) {
  const hint = document.createElement("small");
  hint.className = "scrolls";
  hint.textContent = "The table goes on to the right: scroll it sideways \u2192";
  hint.hidden = true;
  wide.after(hint);
  watched.observe(wide);
}
