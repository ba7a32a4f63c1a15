// The pages work without this. Inside Airflow's window they follow its theme, and links to its own pages open there.
(() => {
  let around = null;
  try {
    around = window.parent === window ? null : window.parent.document;
  } catch {
    // somebody else's window
  }
  if (!around) return;
  const root = around.documentElement;
  const follow = () => {
    document.documentElement.dataset.theme = root.classList.contains("dark") ? "dark" : "light";
  };
  follow();
  new MutationObserver(follow).observe(root, { attributes: true, attributeFilter: ["class"] });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-airflow]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const there = around.createElement("a");
    there.href = link.href;
    around.body.append(there);
    there.click();
    there.remove();
  });
})();
