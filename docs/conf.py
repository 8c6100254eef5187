"""The documentation site: `make docs` builds it, `make docs-serve` shows it."""

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
os.environ.setdefault("RBMLE_QUIET", "1")  # no notices about compiled kernels in the gallery

project = "rbmle"
author = "the rbmle authors"
version = release = installed_version("rbmle")
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "docstrings",  # the four below are in docs/_ext
    "generated",
    "llms",
    "mathml",
]
exclude_patterns = [
    "_build",
    "_ext",
    "gallery/**.ipynb",
    "gallery/**.py",
    "gallery/**.md5",
    "gallery/[!i]*.rst",  # left by a build before examples had folders
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
]
suppress_warnings = ["config.cache", "myst.domains"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autoclass_content = "both"
autodoc_mock_imports = ["ray", "vowpalwabbit", "mabwiser", "psycopg"]
napoleon_numpy_docstring = True

copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

SECTIONS = ("applications", "operation", "extensions", "libraries", "logs", "control")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\w+\.py$",
    "subsection_order": [f"../examples/{name}" for name in SECTIONS],
    "within_subsection_order": "gallery_order.GalleryOrder",
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
    "image_srcset": ["2x"],
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,  # its page would load scripts from another host
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 1,
    "reset_modules": ("matplotlib", "docstrings.reset_example"),
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("rbmle",),
}

html_theme = "pydata_sphinx_theme"
html_title = "rbmle"
html_static_path = ["_static"]
html_css_files = ["rbmle.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "rbmle", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "use_edit_page_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": []}
copyright = "the rbmle authors, MIT licence"
