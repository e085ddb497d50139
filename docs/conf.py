"""How Sphinx builds the site: `make docs`. docs/contributing-docs.md says how to write a page.

Nothing is fetched: formulas are set by KaTeX, whose fonts are in _static/katex, and the outputs of pages that
run are in _executed. Our own extensions are in _ext.
"""

import os
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "_ext"))

from sources import linkcode_resolve  # noqa: E402, F401

from weft import __version__  # noqa: E402
from weft.figures.colours import BARS, FAINT, INK  # noqa: E402

project = "Weft"
author = "The Weft authors"
project_copyright = "The Weft authors; Apache License 2.0"
release = __version__
version = release
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.linkcode",
    "sphinx.ext.intersphinx",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_exercise",
    "sphinx_togglebutton",
    "sphinxcontrib.katex",
    "diagram",
    "executed",
    "docstrings",
    "equations",
    "inline_code",
    "languages",
    "live",
    "modules",
    "settings",
    "sources",
    "vote",
]
exclude_patterns = ["_executed", "**/README.md", "course/slides", "_locale"]
templates_path = ["_templates"]
suppress_warnings = ["myst.header", "ref.python"]
# Included pages may begin below the first level; some tasks have two classes of one name.

# Markdown
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath", "smartquotes"]
myst_heading_anchors = 4
myst_update_mathjax = False

# Pages that run; docs/_ext/executed.py keeps what they gave in docs/_executed
os.environ["PATH"] = (
    f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # so that !weft is found
)
# Plots have the colours of our figures. Kernels run without the profile of a user and without warnings about
# local sockets.
SETTINGS = DOCS.parent / "build" / "ipython"
PROFILE = SETTINGS / "profile_default"
PROFILE.mkdir(parents=True, exist_ok=True)
(PROFILE / "ipython_kernel_config.py").write_text(
    "c.IPKernelApp.log_level = 40\nc.HistoryManager.enabled = False\n", "utf-8"
)
PLOTS = {
    "axes.prop_cycle": f"cycler('color', {[colour[1:] for colour in BARS]})",
    **dict.fromkeys(("axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK[1:]),
    "axes.edgecolor": FAINT[1:],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.edgecolor": "none",
}
(SETTINGS / "matplotlibrc").write_text(
    "".join(f"{name}: {value}\n" for name, value in PLOTS.items()), "utf-8"
)
os.environ |= {"IPYTHONDIR": str(SETTINGS), "MATPLOTLIBRC": str(SETTINGS / "matplotlibrc")}
nb_execution_mode = "cache"
nb_execution_cache_path = str(DOCS.parent / "build" / "jupyter-cache")
nb_execution_in_temp = True
nb_execution_timeout = 900
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_number_source_lines = False

# Python reference
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Source", "notes_style")]
napoleon_use_rtype = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"
# Links to other documentation need its inventory in docs/_inventories, since nothing is fetched.
_OTHERS = {"torch": "https://docs.pytorch.org/docs/stable/", "numpy": "https://numpy.org/doc/stable/"}
_INVENTORIES = {name: DOCS / "_inventories" / f"{name}.inv" for name in _OTHERS}
intersphinx_mapping = {
    name: (_OTHERS[name], str(path)) for name, path in _INVENTORIES.items() if path.exists()
}

# Formulas
katex_css_path = "katex/katex.min.css"  # its scripts come with sphinxcontrib-katex, of the same version
katex_options = (
    "throwOnError: false, macros: {'\\\\R': '\\\\mathbb{R}', '\\\\softmax': '\\\\operatorname{softmax}'}"
)
html_math_renderer = "katex"

# HTML
html_theme = "pydata_sphinx_theme"
html_title = f"Weft {release}"
html_static_path = ["_static"]
html_css_files = ["weft.css"]
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None
html_search_scorer = str(DOCS / "_ext" / "scorer.js")  # Sphinx opens it from the current folder
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_theme_options = {
    "logo": {"text": f"Weft {release}"},
    "navbar_align": "left",
    "navbar_end": ["languages", "theme-switcher"],
    "header_links_before_dropdown": 6,
    "navigation_depth": 3,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": True,
}
html_sidebars = {"index": []}

# Translations: `make docs-gettext` writes one catalog for each page of the course
gettext_compact = False
gettext_uuid = False
gettext_location = False
locale_dirs = ["_locale"]
if tags.has("course"):  # noqa: F821  languages.py builds the course alone; other links lead to the English site
    include_patterns = ["course/**"]
    root_doc = "course/index"
    html_theme_options |= {"navbar_center": []}
    html_sidebars = {"**": ["chapters"]}
