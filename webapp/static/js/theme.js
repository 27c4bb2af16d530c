// Runs before the page is drawn, so that it is drawn once, in the right theme. "auto" follows the system.
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function stored() {
    try {
      return localStorage.getItem("pitwall-theme");
    } catch {
      return null;
    }
  }

  function apply() {
    const theme = stored() || (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    document.dispatchEvent(new CustomEvent("pitwall:theme", { detail: theme }));
  }

  dark.addEventListener("change", apply);
  document.addEventListener("click", (event) => {
    if (!event.target.closest("#theme-toggle")) return;
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    const follows = next === (dark.matches ? "dark" : "light");
    try {
      if (follows) localStorage.removeItem("pitwall-theme");
      else localStorage.setItem("pitwall-theme", next);
    } catch {
      document.documentElement.dataset.theme = next;
    }
    apply();
  });
  apply();
})();
