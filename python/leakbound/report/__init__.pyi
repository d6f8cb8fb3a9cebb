from leakbound.report.page import render as render
from leakbound.report.page import write as write
