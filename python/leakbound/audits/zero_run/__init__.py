"""Observational audits: membership that nobody drew, corrected for what features tell."""
