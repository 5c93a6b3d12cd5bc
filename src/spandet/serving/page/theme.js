"use strict";
// Light or dark: the setting of the system, or the choice of the user. Runs before the first paint.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const KEY = "spandet-theme";

  const remembered = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // the browser does not allow it
    }
  };

  const remember = (theme) => {
    try {
      if (theme) localStorage.setItem(KEY, theme);
      else localStorage.removeItem(KEY);
    } catch {
      // The choice is then lost with the page.
    }
  };

  const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";

  const apply = (theme) => {
    if (theme === "dark" || theme === "light") root.dataset.theme = theme;
    else delete root.dataset.theme;
    document.getElementById("theme")?.setAttribute("aria-pressed", String(isDark()));
  };

  apply(remembered());
  system.addEventListener("change", () => apply(root.dataset.theme));
  addEventListener("DOMContentLoaded", () => {
    apply(root.dataset.theme);
    document.getElementById("theme").addEventListener("click", () => {
      const wanted = isDark() ? "light" : "dark";
      const own = (wanted === "dark") === system.matches ? null : wanted; // null: follow the system
      remember(own);
      apply(own);
    });
  });
})();
