"""Configuration of the documentation; `make docs` treats warnings as errors."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from addresses import icons, notebooks, repository  # noqa: E402 (from the folder above)

project = "leakbound"
author = "The leakbound authors"
copyright = author  # noqa: A001 (Sphinx calls it so)
release = version = version_of("leakbound")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "command_line",
    "mathml",
    "pictures",
    "search_terms",
    "short_signatures",
]
exclude_patterns = ["_build", "examples"]
templates_path = ["_templates"]
nitpicky = False
default_role = "literal"  # `name` in a docstring is code
smartquotes = False  # options begin with two hyphens

# Pages should also be readable on GitHub, so they use few extensions.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
maximum_signature_line_length = 100
add_module_names = False
toc_object_entries_show_parents = "hide"  # names of methods fit beside the page
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

# These need no table of contents of their own, and code that does not wrap needs the width.
SHORT = ["what-is-an-audit", "which-audit", "tutorials/index"]
for place, pattern in (("", "audits/*.md"), ("", "guides/*.md"), ("examples", "tutorials/*.py")):
    folder = HERE / place
    SHORT += [page.relative_to(folder).with_suffix("").as_posix() for page in folder.glob(pattern)]
html_theme = "pydata_sphinx_theme"
html_title = f"leakbound {release}"
html_static_path = ["_static"]
html_extra_path = ["llms.txt"]
html_css_files = ["leakbound.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "collapse_navigation": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 7,
    "icon_links": icons(repository()),
    "navigation_with_keys": False,
    "navbar_align": "left",
    "secondary_sidebar_items": {"**": ["page-toc"], **{page: [] for page in SHORT}},
    "show_nav_level": 1,
    "show_toc_level": 2,
}
html_sidebars = {
    page: []
    for page in (
        "index",
        "what-is-an-audit",
        "which-audit",
        "glossary",
        "pitfalls",
        "comparison",
        "regulators",
    )
}

copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": ["examples/tutorials", "examples/gallery"],
    "gallery_dirs": ["tutorials", "gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "leakbound_order.by_index",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 1_000_000,
    "remove_config_comments": True,
    "reset_modules": ("matplotlib", "leakbound_order.reset"),
    "default_thumb_file": str(HERE / "_static" / "report.png"),
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "capture_repr": ("_repr_html_", "__repr__"),
    "matplotlib_animations": False,
    "copyfile_regex": r".*\.csv",
    **notebooks(repository()),
}
