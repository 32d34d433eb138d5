"""The verbs of odcctl, a module each."""
