// What the theme leaves to do for those who use a keyboard or a screen reader.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll(".bd-article table")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0; // so that arrows scroll it
  }
  for (const button of document.querySelectorAll("button.search-button-field")) {
    button.setAttribute("aria-label", button.textContent.replace(/\s+/g, " ").trim());
  }
  for (const button of document.querySelectorAll(".version-switcher__button")) {
    button.removeAttribute("aria-label"); // the version, which the theme writes later, is the name
  }
});

// The addresses of other versions are relative to the site; the theme takes them as relative to the page.
document.addEventListener("click", (event) => {
  const link = event.target.closest(".version-switcher__menu a");
  if (!link) return;
  const root = new URL(document.documentElement.dataset.content_root, location);
  link.setAttribute("href", new URL(link.getAttribute("href"), root).href);
}, true);
