from leakbound.report.page import render as render
