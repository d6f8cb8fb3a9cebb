"""Pictures of single audits, one function each; see `pictures`."""
