"""Results of a PANORAMIA run as tables, figures and a page."""
