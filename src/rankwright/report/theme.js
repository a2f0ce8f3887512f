// Light or dark: as the system prefers until the reader decides; paper is always light.

const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const themeListeners = [];

function onTheme(listener) {
  themeListeners.push(listener);
}

function isDark() {
  return root.dataset.theme === "dark" || (root.dataset.theme !== "light" && prefersDark.matches);
}

/** Colours for Plotly, which cannot read custom properties: `var(--ink)` becomes `rgb(...)`. */
const themed = (() => {
  const probe = element("span", { hidden: true });
  const known = new Map();
  onTheme(() => known.clear());
  return (colour) => {
    if (!known.has(colour)) {
      if (!probe.isConnected) document.body.append(probe);
      probe.style.color = colour;
      known.set(colour, getComputedStyle(probe).color);
    }
    return known.get(colour);
  };
})();

function themeChanged() {
  for (const listener of themeListeners) listener();
}

function remember(theme) {
  try {
    localStorage.setItem("rankwright-theme", theme);
  } catch {
    // A page opened from a file may not be allowed to; then the choice lasts as long as the page.
  }
}

function setUpTheme() {
  const toggle = document.getElementById("theme");
  const label = () => {
    toggle.textContent = isDark() ? "Light theme" : "Dark theme";
  };
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember(root.dataset.theme);
    themeChanged();
  });
  prefersDark.addEventListener("change", themeChanged);
  onTheme(label);
  label();
  toggle.hidden = false;
}
