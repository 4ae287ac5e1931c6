"""The Logic language: nodes, text and JSON forms, rewriting, grammar, reference interpreter."""
