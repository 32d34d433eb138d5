"""A site's own function that may change or reject submits; it runs in processes of its own.

target: which function; settings: how it is configured; site_code: what runs it; watcher: starts and
ends those processes; process: how the daemon reaches the watcher; filtering: what a submit may
become.
"""
