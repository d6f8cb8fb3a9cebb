"""Audits of one training run whose members were drawn by coins."""
