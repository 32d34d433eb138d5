"""The policy lab: a site's own jobs, replayed on its own nodes and settings, or on others."""
