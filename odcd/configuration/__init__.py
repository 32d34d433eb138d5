"""The settings file: where it is, what it may contain, and the settings that result from it."""
