"""How Sphinx builds the site from these pages: `scripts/docs`. Nothing is fetched from the network."""

from __future__ import annotations

import os
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
os.environ["ADJOINT_EAGER"] = "1"  # so that every name is there to be looked at
sys.path[:0] = [str(ROOT / "src"), str(DOCS / "_site"), str(ROOT / "examples")]

import gallery  # noqa: E402 (beside this file)
import reference  # noqa: E402
import versions  # noqa: E402

import adjoint  # noqa: E402

project = "adjoint"
author = "the authors of adjoint"
copyright = author
version = release = adjoint.__version__

extensions = ["myst_nb", "sphinx_copybutton", "sphinx_design", "sphinxext.opengraph"]
exclude_patterns = ["_site", "_static", "build"]
html_theme = "pydata_sphinx_theme"
html_title = "adjoint"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}  # light or dark, as the reader has it
html_show_sourcelink = False
html_domain_indices = False  # of modules, which are the topics of the reference
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],  # on a phone in the menu
    "switcher": {"json_url": "_static/switcher.json", "version_match": os.environ.get("DOCS_VERSION", "dev")},
    "header_links_before_dropdown": 8,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "search_bar_text": "Search, such as vmap",
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "benchmarks": [], "refusals": []}  # which have no pages beside them

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = os.environ.get("DOCS_EXECUTE", "cache")
nb_execution_cache_path = str(ROOT / "build" / "docs" / "notebooks")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_excludepatterns = ["tour.ipynb"]  # which is executed where it is written
nb_merge_streams = True

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

ogp_site_url = os.environ.get("DOCS_URL", "http://localhost:8000/")
ogp_social_cards = {"enable": nb_execution_mode != "off"}  # a picture of the title, for those who share a page

versions.write(ROOT / "CHANGELOG.md", DOCS / "_static" / "switcher.json")
reference.write(DOCS / "reference")
gallery.write(DOCS / "gallery", execute=nb_execution_mode != "off")
